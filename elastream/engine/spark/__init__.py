"""Spark itself: the session, its executors, jars and errors."""
