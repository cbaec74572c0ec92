"""Nexmark's queries 5 and 11."""
