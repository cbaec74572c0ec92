"""Works that may have ended their host: each is tried again alone, in parts, until the tuple that does it stands alone.

When a host dies, any of its works may be the cause, or none. So each of their lanes is suspected: its next work has a host for
itself, and only a death there counts. A tuple that ends its process three times goes to the dead letters.

A death costs seconds and a work that comes back costs milliseconds, so parts are small: an eighth of what is suspected. A lane
stays under suspicion until all tuples of the work that died have been served.
"""

from dataclasses import dataclass

from elastream.lanes.segments import LaneId

MOST_DEATHS = 3
PARTS = 8


@dataclass
class Suspect:
    """The tuples at the head of a lane."""

    until: int
    """The tuple that does it, if there is one, is before this one, as tuples of a lane are counted."""
    rows: int
    """How many are tried together next."""
    deaths: int = 0
    """How often the tuple that stands alone has ended its host."""


class Suspects:
    """Lanes under suspicion. `whole` lanes are not cut into parts: a sink must see the same rows again."""

    def __init__(self) -> None:
        self._lanes: dict[LaneId, Suspect] = {}

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def __contains__(self, lane: LaneId) -> bool:
        return lane in self._lanes

    def get(self, lane: LaneId) -> Suspect | None:
        return self._lanes.get(lane)

    def host_died(self, lane: LaneId, first: int, rows: int, *, alone: bool, whole: bool) -> None:
        """With a work of `rows` tuples of this lane, from number `first` on."""
        suspect = self._lanes.setdefault(lane, Suspect(first + rows, rows))
        if not alone:
            suspect.rows = min(suspect.rows, rows)
        elif rows == 1 or whole:
            suspect.deaths += 1
        else:
            suspect.until, suspect.rows, suspect.deaths = first + rows, max(1, rows // PARTS), 0

    def served(self, lane: LaneId, consumed: int) -> None:
        """A work of this lane has come back, and so many tuples of the lane are consumed now: those were innocent, or are buried."""
        suspect = self._lanes.get(lane)
        if suspect is None:
            return
        left = suspect.until - consumed
        if left <= 0 or self.condemned(lane):
            del self._lanes[lane]
        else:
            suspect.rows, suspect.deaths = min(suspect.rows, left), 0

    def condemned(self, lane: LaneId) -> bool:
        suspect = self._lanes.get(lane)
        return suspect is not None and suspect.deaths >= MOST_DEATHS
