"""The engine's turns with every tuple by itself: the oracle of the compiled turns, written without looking at them.

Works are planned and sized by the same functions of `elastream.rules`. Slow.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from elastream import rules
from elastream.simulator.crowding import lock_wait, process_cost, thread_cost
from elastream.simulator.engine_planning import CROWDED
from elastream.simulator.engine_turns import BLENDS
from elastream.simulator.engine_works import EngineTurns
from elastream.simulator.model import Model
from elastream.simulator.state import EVEN, NOW, OVER, TICKS, Flags, Ints, Limits, Moving


@dataclass
class Work:
    """Tuples of a lane, or of a source, that a host has."""

    rows: int
    kept: list[float]
    """Due times of those that are not too old."""
    ends_s: float
    served_s: float
    share: float
    host: int
    """-1: in a seat of its own."""
    shares_with: "Work | None" = None


class Flow(Protocol):
    """Where tuples wait, and where they go."""

    model: Model
    moving: Moving
    limits: Limits

    def waiting(self, lane: int, rows: int) -> list[float]:
        """The due times of the first tuples of a lane."""
        ...

    def take(self, lane: int, rows: int) -> None: ...

    def next_due(self, source: int) -> float: ...

    def read(self, source: int, until_s: float, most: int) -> list[float]:
        """The due times of the next tuples of a source that are due."""
        ...

    def deal(self, head: int, tuples: list[float], at_s: float) -> None:
        """Put the output of one work into the lanes behind it."""
        ...

    def service_s(self, operator: int, lane: int) -> float: ...

    def is_late(self, due: float, now_s: float) -> bool: ...

    def hosts_for(self, lane: int) -> list[int]:
        """The hosts that are there and may serve a lane; for -1, a source."""
        ...

    @property
    def copying(self) -> float:
        """Cores that copies of keyed state need."""
        ...


class ExactTurns:
    """The driver, and the works under way."""

    def __init__(self, flow: Flow, hosts: int) -> None:
        self._flow = flow
        fixed = flow.model.fixed
        self._operators = np.repeat(np.arange(len(fixed.service_s)), np.diff(fixed.first)).tolist()
        self._computes = (fixed.cpu_share >= rules.COMPUTING_SHARE).tolist()
        self._works: dict[int, Work] = {}
        self._reading: dict[int, Work] = {}
        self._seen = [0.0] * len(fixed.service_s)
        self._given_s = [-math.inf] * len(self._operators)
        self._read_s = [-math.inf] * len(flow.model.sources)
        self._home = [lane % hosts for lane in range(len(self._operators))]
        self._free_s = [-math.inf] * hosts
        self._starved: list[int] = []
        self._turn_s = 0.0
        self._driver = 0.0
        self._rested_s = 0.0
        self._changed = True
        self.next_s = 0.0

    def step(self, system: EngineTurns, until_s: float) -> None:
        """Turn after turn, until this second or until all is done."""
        moving = self._flow.moving
        if self._changed or (moving.active != moving.asked).any():
            self.next_s = min(self.next_s, float(moving.clock[NOW]))
            self._changed = False
        while (at_s := max(self.next_s, self._rested_s)) <= until_s:
            moving.clock[NOW] = at_s
            self._turn(system, at_s)
        if self.next_s == math.inf:
            moving.clock[OVER] = 1.0
        else:
            moving.clock[NOW] = max(float(moving.clock[NOW]), until_s)

    def lose(self, lanes: Flags, hosts: Flags) -> None:
        """Works of these lanes, or in these hosts, did not happen."""
        gone = set(np.flatnonzero(hosts).tolist())
        self._works = {lane: work for lane, work in self._works.items() if not lanes[lane] and work.host not in gone}
        self._reading = {source: work for source, work in self._reading.items() if work.host not in gone}
        self._changed = True

    def behind_busy(self, queued: Ints) -> Ints:
        """Of those queued per lane, the tuples behind a work under way or without a seat."""
        left = np.zeros_like(queued)
        for lane, work in self._works.items():
            left[lane] = queued[lane] - work.rows
        left[self._starved] = queued[self._starved]
        return left

    def under_way(self, lane: int) -> Work | None:
        return self._works.get(lane)

    def stand_still(self, until_s: float) -> None:
        self._works.clear()
        self._reading.clear()
        self._free_s = [-math.inf] * len(self._free_s)
        self._rested_s = self._flow.moving.clock[NOW] = until_s
        self._changed = True

    # -- one turn

    def _turn(self, system: EngineTurns, at_s: float) -> None:
        moving = self._flow.moving
        receipts = self._take_receipts(system, at_s)
        moving.active[:] = moving.asked
        self._plan_sources(system, at_s)
        self._plan_lanes(system, at_s)
        cost_s = system.turn_s + receipts * system.receipt_s
        self._turn_s = rules.turn_cost(self._turn_s, cost_s)
        rest_s = rules.rest(self._turn_s)
        since_s = max(cost_s, at_s + cost_s + rest_s - self._rested_s)
        self._driver += BLENDS * (cost_s / since_s - self._driver)
        self._rested_s = at_s + cost_s + rest_s
        moving.ticks_s[int(moving.clock[TICKS]) % len(moving.ticks_s)] = since_s
        moving.clock[TICKS] += 1
        self.next_s = self._next_s(system, at_s)

    def _take_receipts(self, system: EngineTurns, at_s: float) -> int:
        moving, sources = self._flow.moving, len(self._flow.model.sources)
        receipts = 0
        for source in [s for s, work in self._reading.items() if work.ends_s + system.hop_s <= at_s]:
            work = self._reading.pop(source)
            moving.next_of[source] += work.rows
            moving.read[source] += work.rows
            moving.entered[source] += work.rows
            self._flow.deal(source, work.kept, work.ends_s)
            receipts += 1
        for lane in sorted(lane for lane, work in self._works.items() if work.ends_s + system.hop_s <= at_s):
            work, operator = self._works.pop(lane), self._operators[lane]
            self._flow.take(lane, work.rows)
            done = len(work.kept)
            moving.dropped[lane] += work.rows - done
            moving.processed[lane] += done
            moving.busy_s[lane] += work.served_s
            receipts += work.shares_with is None
            if done:
                newest = rules.weight(done, self._seen[operator])
                self._seen[operator] += done
                moving.expected_s[operator] += newest * (work.served_s / done - moving.expected_s[operator])
                self._flow.deal(sources + operator, work.kept, work.ends_s)
        return receipts

    def _plan_sources(self, system: EngineTurns, at_s: float) -> None:
        fixed = self._flow.model.fixed
        for source in range(len(self._read_s)):
            if source in self._reading or at_s < self._read_s[source] + rules.PACE_S:
                continue
            service_s = float(fixed.source_service_s[source])
            most = rules.quota(service_s, self._budget_s(system), rules.FIRST_INTAKE)
            tuples = self._flow.read(source, at_s, min(most, self._room(source)))
            host = self._seat(0, self._flow.hosts_for(-1)) if tuples else None
            if host is None:
                continue
            length_s = float(fixed.source_call_s[source]) + system.work_s
            length_s += len(tuples) * (service_s + system.tuple_s)
            ends_s = max(at_s + system.turn_s + system.hop_s, self._free_s[host]) + length_s * self._slower(system)
            self._free_s[host] = ends_s
            self._reading[source] = Work(len(tuples), tuples, ends_s, 0.0, 1.0, host)
            self._read_s[source] = at_s

    def _plan_lanes(self, system: EngineTurns, at_s: float) -> None:
        moving = self._flow.moving
        due = [lane for lane in np.flatnonzero(moving.queued).tolist() if self._due_s(lane, at_s) <= at_s]
        starved = [lane for lane in self._starved if lane in due]
        self._starved = []
        for lane in [*starved, *(lane for lane in due if lane not in starved)]:
            operator = self._operators[lane]
            rows = min(
                int(moving.queued[lane]),
                rules.quota(float(moving.expected_s[operator]), self._budget_s(system), rules.FIRST_TRY),
                self._room(len(self._read_s) + operator),
            )
            computes = self._computes[operator]
            host = self._seat(self._home[lane], self._flow.hosts_for(lane)) if computes else -1
            if rows < 1 or host is None:
                self._starved.append(lane)
                continue
            self._give(system, lane, rows, host, at_s)

    def _give(self, system: EngineTurns, lane: int, rows: int, host: int, at_s: float) -> None:
        flow, operator = self._flow, self._operators[lane]
        fixed = flow.model.fixed
        kept = [due for due in flow.waiting(lane, rows) if not flow.is_late(due, at_s)]
        served_s = sum(flow.service_s(operator, lane) for _ in kept)
        cpu_s = len(kept) * float(fixed.service_s[operator] * fixed.cpu[operator])
        if kept:
            served_s += float(fixed.call_s[operator] / fixed.node_speed[flow.moving.node[lane]])
            cpu_s += float(fixed.call_cpu_s[operator])
        around_s = system.work_s + rows * system.tuple_s
        start_s = at_s + system.turn_s + system.hop_s
        self._given_s[lane] = at_s
        if host < 0:
            taken = min(CROWDED, self._needed(system) / system.cores)
            waiting = [at for at, work in self._works.items() if work.host < 0]
            others = sum(self._home[at] == self._home[lane] for at in waiting)
            cost = thread_cost(system.thread_crowding, others)
            demand = sum(self._works[at].share for at in waiting)
            lock = lock_wait(demand, system.most_computing, system.cores)
            slower = self._crowded(system, 1) * cost * max(1.0 / (1.0 - taken), lock)
            length_s = served_s + around_s + (cpu_s + around_s) * (slower - 1.0)
            share = (cpu_s + around_s) * cost / length_s if length_s else 0.0
            served_s += cpu_s * (slower - 1.0)
            self._works[lane] = Work(rows, kept, start_s + length_s, served_s, share, -1)
            return
        slower = self._slower(system, 1)
        mate = self._mate(lane, host, rows, at_s)
        length_s = (served_s + around_s - (system.work_s if mate else 0.0)) * slower
        ends_s = self._free_s[host] = max(start_s, self._free_s[host]) + length_s
        self._works[lane] = Work(rows, kept, ends_s, served_s * slower, 1.0, host, mate)
        self._home[lane] = host
        for work in self._works.values() if mate else ():
            if work is mate or work.shares_with is mate:
                work.ends_s = ends_s

    def _mate(self, lane: int, host: int, rows: int, at_s: float) -> Work | None:
        """The work of another quiet lane of the operator that was just given to the same host."""
        operator = self._operators[lane]
        expected_s = float(self._flow.moving.expected_s[operator])
        if self._bounded() or not rules.shares_work(rows, expected_s):
            return None
        for other, work in self._works.items():
            same = self._operators[other] == operator and work.host == host and self._given_s[other] == at_s
            opened = same and work.shares_with is None and rules.shares_work(work.rows, expected_s)
            if opened and sum(mine.shares_with is work for mine in self._works.values()) + 1 < rules.MOST_SHARED:
                return work
        return None

    # -- how things are

    def _due_s(self, lane: int, at_s: float) -> float:
        moving = self._flow.moving
        if lane in self._works:
            return math.inf
        expected_s = float(moving.expected_s[self._operators[lane]])
        due = rules.due_s(int(moving.queued[lane]), expected_s, self._given_s[lane], at_s, rules.LANE_PACE_S)
        return max(due, float(moving.ready_s[lane]))

    def _next_s(self, system: EngineTurns, at_s: float) -> float:
        moving = self._flow.moving
        times = [work.ends_s + system.hop_s for work in (*self._works.values(), *self._reading.values())]
        times += [
            at_s + rules.IDLE_S if lane in self._starved else self._due_s(lane, at_s)
            for lane in np.flatnonzero(moving.queued).tolist()
            if lane not in self._works
        ]
        for source in range(len(self._read_s)):
            if source not in self._reading:
                due = max(self._flow.next_due(source), self._read_s[source] + rules.PACE_S)
                times.append(due if due > at_s else at_s + rules.IDLE_S)
        return min(times, default=math.inf)

    def _budget_s(self, system: EngineTurns) -> float:
        return rules.budget(system.budget_s, system.max_budget_s, self._turn_s)

    def _seats(self, host: int) -> int:
        works = (*self._works.values(), *self._reading.values())
        return sum(work.host == host and work.shares_with is None for work in works)

    def _seat(self, home: int, hosts: list[int]) -> int | None:
        """`hosts`: those that may serve."""
        if home not in hosts:
            if not hosts:
                return None
            home = min(hosts, key=self._seats)
        if not self._seats(home):
            return home
        idle = next((host for host in hosts if not self._seats(host)), None)
        if idle is not None:
            return idle
        return home if self._seats(home) < rules.DEPTH else None

    def _needed(self, system: EngineTurns) -> float:
        works = (*self._works.values(), *self._reading.values())
        waiting = sum(work.share for work in works if work.host < 0)
        computing = sum(work.host >= 0 and work.shares_with is None for work in works)
        return waiting + min(computing, system.most_computing) + self._driver + self._flow.copying

    def _slower(self, system: EngineTurns, more: int = 0) -> float:
        needed = self._needed(system)
        computing = sum(w.host >= 0 and w.shares_with is None for w in (*self._works.values(), *self._reading.values()))
        if self._flow.copying and computing < system.cores:
            # Copies are made all the time: the core that is free is not all free.
            needed += 1.0
        crowd = process_cost(system.process_crowding, min(computing, system.most_computing), system.cores)
        return max(1.0, needed / system.cores) * self._crowded(system, more) * crowd

    def _crowded(self, system: EngineTurns, more: int) -> float:
        return 1.0 + system.crowding * max(0, len(self._works) + len(self._reading) + more - system.cores)

    def _bounded(self) -> bool:
        return self._flow.limits.q_size > 0 and not self._flow.limits.drops

    def _room(self, head: int) -> int:
        """The most tuples that a sender may take while full lanes behind it make it wait."""
        room = rules.MOST_ROWS
        if not self._bounded():
            return room
        fixed, moving, sources = self._flow.model.fixed, self._flow.moving, len(self._read_s)
        under_way = [(sources + self._operators[lane], work.rows) for lane, work in self._works.items()]
        under_way += [(source, work.rows) for source, work in self._reading.items()]
        for edge in range(int(fixed.edge_first[head]), int(fixed.edge_first[head + 1])):
            target = int(fixed.edge_to[edge])
            if target < 0:
                continue
            first, active = int(fixed.first[target]), int(moving.active[target])
            lanes = active if fixed.routing[target] == EVEN else 1
            reserved = senders = 0
            for sender, rows in under_way:
                for other in range(int(fixed.edge_first[sender]), int(fixed.edge_first[sender + 1])):
                    if int(fixed.edge_to[other]) == target:
                        reserved += math.ceil(rows * max(1.0, float(fixed.edge_share[other])) / lanes)
                        senders += 1
            fullest = int(moving.queued[first : first + active].max())
            free = max(0, self._flow.limits.q_size - fullest - reserved)
            room = min(room, rules.fits(free, lanes, max(1.0, float(fixed.edge_share[edge])), senders))
        return room
