"""Threads, processes and machines: how many there are, were asked for and are planned. Knows no policy.

A level of containers holds the one before it: an executor (a machine) has hosts (processes), a host has seats (threads).
"""

from elastream.fleet.levels import Level, LevelState
from elastream.fleet.port import Fleet

__all__ = ["Fleet", "Level", "LevelState"]
