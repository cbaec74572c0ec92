"""Suites of scenarios on Spark or on the simulator."""
