"""Benchmarks: a machine with Spark enters; measured figures beside their goals, as tables and plots, leave."""
