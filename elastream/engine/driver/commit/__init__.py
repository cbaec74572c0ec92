"""Receipts of hosts become one entry of the ledger."""
