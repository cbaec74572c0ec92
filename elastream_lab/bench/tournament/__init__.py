"""Policies against one another on traces and recorded runs."""
