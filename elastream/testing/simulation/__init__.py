"""Deterministic simulation: the real tick and worker code under one seeded scheduler in virtual time. See docs/testing.md."""

from elastream.testing.simulation.scenario import Scenario, draw_scenario
from elastream.testing.simulation.world import Outcome, simulate

__all__ = ["Outcome", "Scenario", "draw_scenario", "simulate"]
