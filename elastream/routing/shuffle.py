"""The grouping `shuffle`: evenly, the default."""

from dataclasses import dataclass

from elastream.routing.balance import dealt
from elastream.routing.base import Grouping, SimulatedAs, Snapshot


@dataclass(frozen=True)
class Shuffle(Grouping):
    """Evenly over the active replicas, to within one tuple per work. The default."""

    name = "shuffle"
    even = True
    simulated_as = SimulatedAs.EVEN

    def spread(self, rows: int, to: Snapshot, turn: int) -> list[int]:
        return dealt(rows, len(to.active), turn)
