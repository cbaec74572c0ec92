"""When lanes are due: each that has tuples and no work under way is in a heap, or waits for a host.

Only lanes that changed are looked at.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable

from elastream import rules
from elastream.engine.driver.commit.estimates import Estimates
from elastream.engine.driver.dispatch.works import WorkTable
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.topology import Graph, Kind


class LaneSchedule:
    """The lanes of a run that may get a work. In the driver's thread only."""

    def __init__(self, graph: Graph, state: LedgerState, estimates: Estimates, works: WorkTable) -> None:
        self._state = state
        self._estimates = estimates
        self._works = works
        self._hosted = frozenset(o.name for o in graph.served if o.kind is not Kind.OUTPUT and not o.by_spark)
        self._due: list[tuple[float, int, LaneId]] = []
        self._due_at: dict[LaneId, float] = {}
        self._sent_s: dict[LaneId, float] = {}
        """When a lane got its last work."""
        self._starved: dict[LaneId, None] = {}
        """Lanes that are due and have got no work yet, in the order in which they became due."""

    def begin(self, now: float) -> None:
        """Look at all lanes once: those that have tuples when the run begins."""
        self.filled(list(self._state.lanes), now)

    def filled(self, lanes: Iterable[LaneId], now: float) -> None:
        """Tuples have come into these lanes."""
        for lane in lanes:
            if lane.operator in self._hosted and not self._works.is_busy(lane):
                self.add(lane, now)

    def add(self, lane: LaneId, now: float) -> None:
        """A lane may have tuples, and has no work under way."""
        queue = self._state.lanes.get(lane)
        if queue is None or not len(queue) or lane in self._starved:
            return
        rows, service_s = len(queue), self._estimates.of(lane.operator)
        at = rules.due_s(rows, service_s, self._sent_s.get(lane, -math.inf), now, rules.LANE_PACE_S)
        if at < self._due_at.get(lane, math.inf):
            self._due_at[lane] = at
            heapq.heappush(self._due, (at, self._works.next_turn(), lane))

    def sent(self, lanes: Iterable[LaneId], now: float) -> None:
        """These lanes get a work now."""
        self._sent_s.update(dict.fromkeys(lanes, now))

    def starve(self, lanes: Iterable[LaneId]) -> None:
        """These lanes wait for a host, or for room behind them."""
        self._starved |= dict.fromkeys(lanes)

    def starve_due(self, now: float) -> None:
        """Lanes whose time has come wait for a host from now on."""
        while self._due and self._due[0][0] <= now:
            at, _, lane = heapq.heappop(self._due)
            if self._due_at.get(lane) == at:
                del self._due_at[lane]
                self._starved[lane] = None

    def take_starved(self) -> list[LaneId]:
        """All that wait for a host; those that get none must be starved again."""
        ready, self._starved = list(self._starved), {}
        return ready

    def has_tuples(self, lane: LaneId) -> bool:
        return bool(len(self._state.queue(lane)))

    def next_s(self) -> float:
        """When the next lane is due; infinite if none is."""
        return self._due[0][0] if self._due else math.inf

    def waiting(self) -> Counter[str]:
        """Per operator, the tuples that wait for a busy replica, for a host or for room."""
        waiting = self._works.waiting_behind()
        for lane in self._starved:
            waiting[lane.operator] += len(self._state.queue(lane))
        return waiting
