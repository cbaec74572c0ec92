"""Threads, processes and machines compared."""
