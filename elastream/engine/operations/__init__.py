"""A run from a second terminal: its status, requests that other processes leave, and its log file."""
