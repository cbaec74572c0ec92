"""Health: which instance is congested, looked for from the sources on (section 2.2 and algorithm 1).

An operator's instance is as healthy as the share of the tuples it received that it processed; a source as the share of those that
were due that it emitted (section 5.4).
"""

from dataclasses import dataclass

from elastream.control import Observation, OperatorObservation
from elastream.control.health import LEAST_BEHIND, health, sick


@dataclass(frozen=True)
class Congested:
    """The instance closest to the sources whose health is too low."""

    operator: str
    health: float
    is_source: bool = False
    lane: int = 0

    def __str__(self) -> str:
        which = f"source {self.operator}" if self.is_source else f"{self.operator} {self.lane}"
        return f"{which} has health {self.health:.2f}"


class Sources:
    """Remembers what waited in front of sources, so that what became due is known."""

    def __init__(self) -> None:
        self._waited: dict[str, int] = {}
        self.due: dict[str, int] = {}
        """Per source, tuples that became due in the last interval."""

    def note(self, observation: Observation) -> None:
        for source in _sources(observation):
            grown = source.queued - self._waited.get(source.operator, 0)
            self.due[source.operator] = max(0, source.processed + grown)
            self._waited[source.operator] = source.queued

    @property
    def total(self) -> int:
        return sum(self.due.values())


def congested(observation: Observation, sources: Sources, least: float) -> Congested | None:
    """The first in topological order; of an operator, its worst instance."""
    for source in _sources(observation):
        due = sources.due.get(source.operator, 0)
        if due and source.processed / due < least and source.queued > LEAST_BEHIND * due:
            return Congested(source.operator, source.processed / due, is_source=True)
    found = list(sick(observation, least))
    if not found:
        return None
    first = found[0][0]
    worst = min((lane for operator, lane in found if operator is first), key=health)
    return Congested(first.operator, health(worst), lane=worst.lane)


def lowest(observation: Observation) -> float:
    """The health of the worst instance of all operators; 1 when nothing was received."""
    return min((health(lane) for o in observation.scalable() for lane in o.lanes if lane.active), default=1.0)


def _sources(observation: Observation) -> list[OperatorObservation]:
    return [operator for operator in observation.operators.values() if operator.role == "source"]
