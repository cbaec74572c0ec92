"""The grouping `all_`: every tuple to every replica."""

from dataclasses import dataclass

from elastream.routing.base import Grouping, SimulatedAs


@dataclass(frozen=True)
class All(Grouping):
    """Every active replica gets every tuple."""

    name = "all"
    to_all = True
    simulated_as = SimulatedAs.EVERY
