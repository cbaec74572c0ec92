"""Operators that are Spark DataFrame transformations, and their state."""
