"""Fakes that ship with the package: a scripted plant, a manual clock, observations in a line. For tests of policies."""

from elastream.testing.clock import ManualClock
from elastream.testing.local_engine import LocalEngine
from elastream.testing.observations import observation, operator, source
from elastream.testing.plant import ScriptedPlant

__all__ = ["LocalEngine", "ManualClock", "ScriptedPlant", "observation", "operator", "source"]
