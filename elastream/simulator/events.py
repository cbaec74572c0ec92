"""Every tuple by itself: the engine's turns over lanes of tuples, and tuple-by-tuple systems as discrete events."""

import heapq
import math

import numpy as np

from elastream.simulator.engine_events import ExactTurns
from elastream.simulator.engine_works import EngineTurns
from elastream.simulator.state import NOW, OVER, TICKS, Ints
from elastream.simulator.storm_steps import StormSteps
from elastream.simulator.tuples import Tuples


class Events(Tuples):
    """Behind the same interface as the vectorised simulation."""

    _exact: ExactTurns | None = None

    def step(self, until_s: float) -> None:
        if isinstance(self.system, EngineTurns):
            self._engine(self.system).step(self.system, until_s)
        else:
            self._serve(self.system, until_s)

    def behind_busy(self) -> Ints:
        queued: Ints = self.moving.queued.copy()
        if isinstance(self.system, EngineTurns):
            return self._engine(self.system).behind_busy(queued)
        queued[list(self._serving)] -= 1
        return queued

    def lose_works(self, lanes: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
        if isinstance(self.system, EngineTurns):
            self._engine(self.system).lose(lanes)

    def _stand_still(self, until_s: float) -> None:
        if isinstance(self.system, EngineTurns):
            self._engine(self.system).stand_still(until_s)
        else:
            super()._stand_still(until_s)

    def _changed(self) -> None:
        if isinstance(self.system, EngineTurns):
            self._engine(self.system).next_s = float(self.moving.clock[NOW])

    def _engine(self, system: EngineTurns) -> ExactTurns:
        if self._exact is None:
            self._exact = ExactTurns(self, system)
        return self._exact

    def _done(self) -> bool:
        if (
            any(self.next_due(source) < math.inf for source in range(len(self.moving.next_of)))
            or self.moving.queued.any()
        ):
            return False
        self.moving.clock[OVER] = 1.0
        return True

    # -- a system that serves tuple by tuple

    def _serve(self, system: StormSteps, until_s: float) -> None:
        """Arrivals, ends of services and lanes that get ready, in the order of time."""
        moving = self.moving
        moving.active[:] = moving.asked
        for lane in range(len(self.lanes)):
            self._begin(system, lane, float(moving.clock[NOW]))
        while True:
            due, source = min((self.next_due(source), source) for source in range(len(moving.next_of)))
            end = self._ends[0][0] if self._ends else math.inf
            wake = self._wakes[0][0] if self._wakes else math.inf
            # What was due while everything stood still comes when that is over.
            at_s = max(float(moving.clock[NOW]), min(due, end, wake))
            if at_s > until_s or at_s == math.inf:
                moving.clock[NOW] = max(float(moving.clock[NOW]), until_s)
                if at_s == math.inf:
                    self._done()
                break
            moving.clock[NOW] = self.finished_s = at_s
            if due <= min(end, wake):
                moving.next_of[source] += 1
                moving.read[source] += 1
                moving.entered[source] += 1
                given = self.hand_on(source, due)
            elif end <= wake:
                _, operator, lane = heapq.heappop(self._ends)
                self._serving.discard(lane)
                served = self.lanes[lane].popleft()
                moving.queued[lane] -= 1
                moving.processed[lane] += 1
                given = [*self.hand_on(len(moving.next_of) + operator, served), lane]
            else:
                given = [heapq.heappop(self._wakes)[1]]
            for lane in given:
                self._begin(system, lane, at_s)
        moving.clock[TICKS] += 1

    def _begin(self, system: StormSteps, lane: int, now_s: float) -> None:
        """Serve the next tuple of a lane that is free."""
        fixed, moving = self.model.fixed, self.moving
        node = int(moving.node[lane])
        if lane in self._serving or not self.lanes[lane] or not moving.node_up[node]:
            return
        if moving.ready_s[lane] > now_s:
            heapq.heappush(self._wakes, (float(moving.ready_s[lane]), lane))
            return
        while self.lanes[lane] and self.is_late(self.lanes[lane][0], now_s):
            self.lanes[lane].popleft()
            moving.queued[lane] -= 1
            moving.dropped[lane] += 1
        if not self.lanes[lane]:
            return
        operator = self._operator_of(lane)
        self._serving.add(lane)
        there = [its for its in self._serving if moving.node[its] == node]
        demand = sum(float(fixed.cpu[self._operator_of(its)]) for its in there)
        crowd = max(0.0, len(there) - float(fixed.node_cores[node]))
        slower = max(1.0, demand / float(fixed.node_cores[node])) * (1.0 + system.crowding * crowd)
        seconds = self.service_s(operator, lane) * slower
        moving.busy_s[lane] += seconds
        heapq.heappush(self._ends, (now_s + seconds, operator, lane))

    def _operator_of(self, lane: int) -> int:
        return int(np.searchsorted(self.model.fixed.first, lane, side="right")) - 1

    def drop(self, lanes: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
        super().drop(lanes)
        gone = set(np.flatnonzero(lanes).tolist())
        self._ends = [end for end in self._ends if end[2] not in gone]
        heapq.heapify(self._ends)
        self._serving -= gone
