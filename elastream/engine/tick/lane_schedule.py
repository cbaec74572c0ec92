"""When lanes are due: each that has tuples and no work under way stands in a heap, or waits for a seat.

Only lanes that changed are looked at.
"""

import heapq
import math
from collections.abc import Iterator

from elastream import rules
from elastream.engine.tick.estimates import Estimates
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState


class LaneSchedule:
    """The lanes of a run that may get a work. In the tick's thread."""

    def __init__(self, state: LedgerState, estimates: Estimates, turns: Iterator[int]) -> None:
        """`turns` gives numbers that grow: of two lanes that are due at once, the first to come is the first to go."""
        self._state = state
        self._estimates = estimates
        self._turns = turns
        self._due: list[tuple[float, int, LaneId]] = []
        self._due_at: dict[LaneId, float] = {}
        self.given_s: dict[LaneId, float] = {}
        """When a lane got its last work."""
        self.starved: dict[LaneId, None] = {}
        """Lanes that are due, in the order in which they became so, and have got no work yet."""

    def add(self, lane: LaneId, now: float) -> None:
        """A lane may have tuples, and has no work under way."""
        queue = self._state.lanes.get(lane)
        if queue is None or not len(queue) or lane in self.starved:
            return
        rows, service_s = len(queue), self._estimates.of(lane.operator)
        at = rules.due_s(rows, service_s, self.given_s.get(lane, -math.inf), now, rules.LANE_PACE_S)
        if at < self._due_at.get(lane, math.inf):
            self._due_at[lane] = at
            heapq.heappush(self._due, (at, next(self._turns), lane))

    def starve_due(self, now: float) -> None:
        """Lanes whose time has come wait for a seat from now on."""
        while self._due and self._due[0][0] <= now:
            at, _, lane = heapq.heappop(self._due)
            if self._due_at.get(lane) == at:
                del self._due_at[lane]
                self.starved[lane] = None

    def take_starved(self) -> list[LaneId]:
        """All that wait for a seat; those that get none must be put back."""
        ready, self.starved = list(self.starved), {}
        return ready

    def next_s(self) -> float:
        """When the next lane is due; infinite when none is."""
        return self._due[0][0] if self._due else math.inf
