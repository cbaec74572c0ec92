"""Every tuple by itself: the engine's ticks over lanes of tuples, and tuple-by-tuple systems as discrete events."""

import heapq
import math

import numpy as np

from elastream.simulator.spark_ticks import LEARNS, MOST_ROWS, SHARED_S, SparkTicks, plan_tick, room_for, tick_budget
from elastream.simulator.state import BUDGET_S, NOW, OVER, OVERHEAD_S, OVERHEADS, TICKS
from elastream.simulator.storm_steps import StormSteps
from elastream.simulator.tuples import Tuples


class Events(Tuples):
    """Behind the same interface as the vectorised simulation."""

    def step(self, until_s: float) -> None:
        if isinstance(self.system, SparkTicks):
            self._ticks(self.system, until_s)
        else:
            self._serve(self.system, until_s)

    def _done(self) -> bool:
        if (
            any(self.next_due(source) < math.inf for source in range(len(self.moving.next_of)))
            or self.moving.queued.any()
        ):
            return False
        self.moving.clock[OVER] = 1.0
        return True

    # -- the engine's ticks

    def _ticks(self, system: SparkTicks, until_s: float) -> None:
        take = np.zeros(len(self.lanes), np.int64)
        while self.moving.clock[NOW] < until_s and not self._done():
            self._tick(system, take)

    def _tick(self, system: SparkTicks, take: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> None:
        fixed, moving, limits = self.model.fixed, self.moving, self.limits
        began_s = float(moving.clock[NOW])
        sources = len(moving.next_of)
        if not plan_tick(fixed, system, limits, moving, take):
            soonest = min(self.next_due(source) for source in range(sources))
            moving.clock[NOW] = max(began_s, min(soonest, began_s + system.heartbeat_s))
        start_s = float(moving.clock[NOW])
        served: list[tuple[int, int, list[float], float]] = []
        longest_s = working = small_s = 0.0
        alone = threads = tuples = 0
        for operator in range(len(fixed.service_s)):
            for lane in range(int(fixed.first[operator]), int(fixed.first[operator + 1])):
                if not take[lane]:
                    continue
                took = [self.lanes[lane].popleft() for _ in range(int(take[lane]))]
                moving.queued[lane] -= len(took)
                tuples += len(took)
                kept = [due for due in took if not self.is_late(due, start_s)]
                moving.dropped[lane] += len(took) - len(kept)
                seconds = sum(self.service_s(operator, lane) for _ in kept)
                working += seconds * float(fixed.cpu[operator])
                if fixed.threads[operator] and kept:
                    seconds += system.lane_s
                served.append((operator, lane, kept, seconds))
                longest_s = max(longest_s, seconds)
                if seconds < SHARED_S:
                    small_s += seconds
                elif fixed.threads[operator]:
                    threads += 1
                else:
                    alone += 1
        slower = max(1.0, working / (system.cores * longest_s)) if longest_s else 1.0
        slower *= 1.0 + system.crowding * max(0, alone + threads - system.cores)
        longest_s *= slower
        tasks = alone + min(threads, system.threads_tasks) + max(1, math.ceil(small_s / SHARED_S))
        noise = (
            math.exp(system.spread * self._random.standard_normal() - system.spread**2 / 2) if system.spread else 1.0
        )
        overhead_s = (system.base_s + system.task_s * tasks) * noise
        read_at_s = start_s + overhead_s * system.reads_at
        self.finished_s = start_s + overhead_s + longest_s
        for source in range(sources):
            most = int(min(MOST_ROWS, max(1.0, moving.clock[BUDGET_S] / fixed.source_service_s[source])))
            for _ in range(min(most, int(room_for(fixed, limits, moving, source)))):
                due = self.next_due(source)
                if due > read_at_s + 1e-9:
                    break
                moving.next_of[source] += 1
                moving.read[source] += 1
                moving.entered[source] += 1
                tuples += 1
                self.hand_on(source, due)
        overhead_s += tuples * system.tuple_s
        self.finished_s = start_s + overhead_s + longest_s
        for operator, lane, kept, seconds in served:
            moving.processed[lane] += len(kept)
            moving.busy_s[lane] += seconds * slower
            for due in kept:
                self.hand_on(sources + operator, due)
        for operator in {operator for operator, _, kept, _ in served if kept}:
            mine = [(len(kept), seconds) for its, _, kept, seconds in served if its == operator]
            mean_s = sum(seconds for _, seconds in mine) * slower / sum(count for count, _ in mine)
            moving.expected_s[operator] += LEARNS * (mean_s - moving.expected_s[operator])
        moving.clock[NOW] = self.finished_s
        if longest_s:
            moving.clock[OVERHEAD_S] += overhead_s
            moving.clock[OVERHEADS] += 1
        moving.ticks_s[int(moving.clock[TICKS]) % len(moving.ticks_s)] = self.finished_s - began_s
        moving.clock[TICKS] += 1
        moving.active[:] = moving.asked
        moving.clock[BUDGET_S] = tick_budget(fixed, system, moving)

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
