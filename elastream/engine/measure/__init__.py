"""Receipts enter; observations and the record of a run leave."""
