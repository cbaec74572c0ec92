"""Tapes: everything that reached a driver, so that its ticks can be made again without hosts, storage or Spark."""
