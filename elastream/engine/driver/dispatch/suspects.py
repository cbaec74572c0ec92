"""Works that may have ended their host: each is tried again alone, in parts, until the tuple that does it stands alone.

When a host dies, any of its works may be the cause, or none. So each of their lanes is suspected: its next work has a host for
itself, and only a death there counts. A tuple that ends its process three times goes to the dead letters.

A death costs seconds and a work that comes back costs milliseconds, so parts are small: an eighth of what is suspected. A lane
stays under suspicion until all tuples of the work that died have been served.

Where keys are woken, that may be the cause as well. So tuples are tried first, and no key is woken meanwhile; then the keys
whose time has come are woken, the earliest first, and no tuple is served meanwhile: a lane that stands still wakes the same
keys in the same order whenever it is tried. A key that ends its process three times has that timer in the dead letters.
"""

from dataclasses import dataclass

from elastream.lanes.segments import LaneId

MOST_DEATHS = 3
PARTS = 8
FIRST_KEYS = 64
"""How many keys are woken together to begin with: how many are to be woken is known in their host only."""


@dataclass
class Suspect:
    """The tuples at the head of a lane."""

    until: int
    """The tuple that does it, if there is one, is before this one, as tuples of a lane are counted."""
    rows: int
    """How many are tried together next."""
    deaths: int = 0
    """How often the tuple that stands alone has ended its host."""


@dataclass
class TimerSuspect:
    """The keys of some key groups whose time had come at some moment."""

    clock_s: float
    watermark_s: float | None
    groups: tuple[int, ...]
    keys: int = FIRST_KEYS
    """How many are woken together next, the earliest first."""
    deaths: int = 0
    """How often the key that stands alone has ended its host."""


class Suspects:
    """Lanes under suspicion. `whole` lanes are not cut into parts: a sink must see the same rows again."""

    def __init__(self) -> None:
        self._lanes: dict[LaneId, Suspect] = {}
        self._timers: dict[LaneId, TimerSuspect | None] = {}
        """Lanes whose keys are suspected too; None until that is looked into."""

    def __bool__(self) -> bool:
        return bool(self._lanes or self._timers)

    def __contains__(self, lane: LaneId) -> bool:
        return lane in self._lanes or lane in self._timers

    def get(self, lane: LaneId) -> Suspect | None:
        return self._lanes.get(lane)

    def is_waking(self, lane: LaneId) -> bool:
        """True when the tuples of a lane are innocent, or buried, and its keys are suspected."""
        return lane in self._timers and lane not in self._lanes

    def wakes_only(self) -> list[LaneId]:
        """All such lanes."""
        return [lane for lane in self._timers if self.is_waking(lane)]

    def keys_of(self, lane: LaneId) -> TimerSuspect | None:
        """The keys of such a lane that are to be woken next; None when that is not known yet."""
        return self._timers.get(lane)

    def suspect_keys(self, lane: LaneId, timers: TimerSuspect) -> None:
        """The keys of such a lane whose time has come."""
        self._timers[lane] = timers

    def host_died(self, lane: LaneId, first: int, rows: int, *, alone: bool, whole: bool, wakes: bool = False) -> None:
        """With a work of `rows` tuples of this lane, from number `first` on. `wakes`: keys of the lane are woken."""
        timers = self._timers.setdefault(lane, None) if wakes else None
        if rows:
            self._tuples_died(lane, first, rows, alone=alone, whole=whole)
        elif alone and timers is not None:
            if timers.keys == 1:
                timers.deaths += 1
            else:
                timers.keys, timers.deaths = max(1, timers.keys // PARTS), 0

    def _tuples_died(self, lane: LaneId, first: int, rows: int, *, alone: bool, whole: bool) -> None:
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

    def woken(self, lane: LaneId, *, left: bool) -> None:
        """A work that only wakes keys has come back: those were innocent, or are buried. `left`: others are to be woken."""
        timers = self._timers.get(lane)
        if timers is not None and left and not self.condemned(lane):
            timers.deaths = 0
        else:
            self._timers.pop(lane, None)

    def condemned(self, lane: LaneId) -> bool:
        """True when the tuple, or the key, that is tried next has ended its host too often."""
        suspect = self._lanes.get(lane) or self._timers.get(lane)
        return suspect is not None and suspect.deaths >= MOST_DEATHS
