"""Every tuple by itself: the engine's turns over lanes of tuples, and tuple-by-tuple systems as discrete events."""

import heapq
import math
from functools import cached_property

import numpy as np

from elastream.simulator.engine_events import ExactTurns
from elastream.simulator.engine_works import COPYING, EngineTurns
from elastream.simulator.state import NOW, OVER, TICKS, Flags, Ints
from elastream.simulator.storm_steps import StormSteps
from elastream.simulator.tuples import Tuples


class Events(Tuples):
    """Behind the same interface as the vectorised simulation."""

    _exact: ExactTurns | None = None

    def step(self, until_s: float) -> None:
        if isinstance(self.system, EngineTurns):
            self._engine.step(self.system, until_s)
        else:
            self._serve(self.system, until_s)

    def behind_busy(self) -> Ints:
        queued: Ints = self.moving.queued.copy()
        if isinstance(self.system, EngineTurns):
            return self._engine.behind_busy(queued)
        queued[list(self._serving)] -= 1
        return queued

    def lose_works(self, lanes: Flags, hosts: Flags) -> None:
        if isinstance(self.system, EngineTurns):
            self._engine.lose(lanes, hosts)

    def hosts_for(self, lane: int) -> list[int]:
        assert self.works is not None
        up = np.flatnonzero(self.works.hosts["up"])
        if lane >= 0:
            its = self.works.lanes[lane]
            up = up[(up >= its["from_host"]) & (up < its["to_host"])]
        found: list[int] = up.tolist()
        return found

    @property
    def copying(self) -> float:
        return float(self.works.clock[COPYING]) if self.works is not None else 0.0

    def busy_until(self, lane: int) -> float:
        now_s = float(self.moving.clock[NOW])
        if isinstance(self.system, EngineTurns):
            work = self._engine.under_way(lane)
            return now_s if work is None else max(now_s, work.ends_s + self.system.hop_s)
        return max([now_s, *(end for end, _, its in self._ends if its == lane)])

    def _under_way(self, lane: int) -> int:
        if isinstance(self.system, EngineTurns):
            work = self._engine.under_way(lane)
            return 0 if work is None else work.rows
        return int(lane in self._serving)

    def _stand_still(self, until_s: float) -> None:
        if isinstance(self.system, EngineTurns):
            self._engine.stand_still(until_s)
        else:
            super()._stand_still(until_s)

    def changed(self) -> None:
        if isinstance(self.system, EngineTurns):
            self._engine.next_s = float(self.moving.clock[NOW])

    @property
    def _engine(self) -> ExactTurns:
        if self._exact is None:
            assert self.works is not None
            self._exact = ExactTurns(self, len(self.works.hosts))
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
        limit = self.limits.in_flight
        while True:
            due, source = min((self.next_due(source), source) for source in range(len(moving.next_of)))
            if limit and self._in_flight >= limit:
                due = math.inf
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
                given = self.hand_on(source, at_s if limit else due)
            elif end <= wake:
                _, operator, lane = heapq.heappop(self._ends)
                self._serving.discard(lane)
                served = self.lanes[lane].popleft()
                moving.queued[lane] -= 1
                moving.processed[lane] += 1
                if self.limits.first_acks and self.model.fixed.entry[operator]:
                    self.note(served)
                given = [*self.hand_on(len(moving.next_of) + operator, served), lane]
            else:
                given = [heapq.heappop(self._wakes)[1]]
            for lane in given:
                self._begin(system, lane, at_s)
        if self.limits.spout_size:
            for source in range(len(moving.next_of)):
                over = max(0, self.unread(source) - self.limits.spout_size)
                moving.next_of[source] += over
                moving.refused[source] += over
        moving.clock[TICKS] += 1

    @property
    def _in_flight(self) -> int:
        return int(self.moving.queued[self._unacknowledged].sum())

    @cached_property
    def _unacknowledged(self) -> Flags:
        """Lanes whose tuples are in flight."""
        if not self.limits.first_acks:
            return np.ones(len(self.lanes), np.bool_)
        entries: Flags = np.repeat(self.model.fixed.entry, np.diff(self.model.fixed.first))
        return entries

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
        operator = self._operators[lane]
        self._serving.add(lane)
        there = [its for its in self._serving if moving.node[its] == node]
        demand = sum(float(fixed.cpu[self._operators[its]]) for its in there)
        crowd = max(0.0, len(there) - float(fixed.node_cores[node]))
        slower = max(1.0, demand / float(fixed.node_cores[node])) * (1.0 + system.crowding * crowd)
        seconds = self.service_s(operator, lane) * slower
        moving.busy_s[lane] += seconds
        heapq.heappush(self._ends, (now_s + seconds, operator, lane))

    @cached_property
    def _operators(self) -> list[int]:
        """The operator of each lane."""
        found: list[int] = np.repeat(np.arange(len(self.model.operators)), np.diff(self.model.fixed.first)).tolist()
        return found

    def drop(self, lanes: Flags) -> None:
        super().drop(lanes)
        gone = set(np.flatnonzero(lanes).tolist())
        self._ends = [end for end in self._ends if end[2] not in gone]
        heapq.heapify(self._ends)
        self._serving -= gone
