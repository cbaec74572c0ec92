"""The grouping `load_balancing` (PSPS, algorithm 1): to the replica that was least busy lately."""

from dataclasses import dataclass

from elastream.routing.balance import balanced_counts
from elastream.routing.base import Grouping, LoadMeasure, SimulatedAs, Snapshot


@dataclass(frozen=True)
class LoadBalancing(Grouping):
    """Each tuple to the active replica that was least busy lately, counting what it was sent since (PSPS, algorithm 1)."""

    name = "load_balancing"
    simulated_as = SimulatedAs.BUSY

    @property
    def load(self) -> LoadMeasure:
        return LoadMeasure.BUSY

    def spread(self, rows: int, to: Snapshot, turn: int) -> list[int]:
        return balanced_counts(rows, to.load or (0.0,) * len(to.active), to.cost, turn)
