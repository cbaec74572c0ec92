"""Sinks of the applications: SQLite, PostgreSQL and Redis, each delivery once."""
