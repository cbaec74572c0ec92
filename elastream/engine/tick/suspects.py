"""Works that may have ended their host: each is tried again alone, in halves, until the tuple that does it stands alone.

When a host dies, any of its works may be the cause, or none. So each of their lanes is suspected: its next work has a host for
itself, and only a death there counts. A tuple that ends its process three times goes to the dead letters.
"""

from dataclasses import dataclass

from elastream.lanes.segments import LaneId

MOST_DEATHS = 3


@dataclass
class Suspect:
    """The tuples at the head of a lane."""

    rows: int
    """How many are tried together next."""
    deaths: int = 0
    """How often the tuple that stands alone has ended its host."""


class Suspects:
    """Lanes under suspicion. `whole` lanes are not cut into halves: a sink must see the same rows again."""

    def __init__(self) -> None:
        self._lanes: dict[LaneId, Suspect] = {}

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def __contains__(self, lane: LaneId) -> bool:
        return lane in self._lanes

    def get(self, lane: LaneId) -> Suspect | None:
        return self._lanes.get(lane)

    def host_died(self, lane: LaneId, rows: int, *, alone: bool, whole: bool) -> None:
        suspect = self._lanes.setdefault(lane, Suspect(rows))
        if not alone:
            suspect.rows = min(suspect.rows, rows)
        elif rows == 1 or whole:
            suspect.deaths += 1
        else:
            suspect.rows, suspect.deaths = rows // 2, 0

    def served(self, lane: LaneId) -> None:
        """A work of this lane has come back: those tuples were innocent."""
        self._lanes.pop(lane, None)

    def condemned(self, lane: LaneId) -> bool:
        suspect = self._lanes.get(lane)
        return suspect is not None and suspect.deaths >= MOST_DEATHS
