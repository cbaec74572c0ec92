"""Hosts, lanes and key groups: where each is, where it shall be, and how it gets there."""
