"""Which lane a tuple goes to: one class per grouping, each in its own file. Pure functions on arrays."""

from elastream.routing.base import Grouping, LoadMeasure, Sender, SimulatedAs, Snapshot
from elastream.routing.key_groups import Owners
from elastream.routing.route import Part, lanes_of, split

__all__ = ["Grouping", "LoadMeasure", "Owners", "Part", "Sender", "SimulatedAs", "Snapshot", "lanes_of", "split"]
