"""Topologies and measurements for the figures of the five papers."""
