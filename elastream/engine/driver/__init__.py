"""The driver's turn: receipts enter, an entry is committed, the next works leave. Knows no Spark."""
