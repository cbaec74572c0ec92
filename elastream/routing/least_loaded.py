"""The grouping `least_loaded`: to the replica with the fewest queued tuples."""

from dataclasses import dataclass

from elastream.routing.balance import balanced_counts
from elastream.routing.base import Grouping, LoadMeasure, SimulatedAs, Snapshot


@dataclass(frozen=True)
class LeastLoaded(Grouping):
    """Each tuple to the active replica with the fewest queued tuples."""

    name = "least_loaded"
    simulated_as = SimulatedAs.SHORTEST

    @property
    def load(self) -> LoadMeasure:
        return LoadMeasure.QUEUED

    def spread(self, rows: int, to: Snapshot, turn: int) -> list[int]:
        return balanced_counts(rows, to.load or (0.0,) * len(to.active), to.cost, turn)
