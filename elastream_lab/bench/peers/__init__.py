"""Elastream beside Flink and Storm on the same machine and the same tuples."""
