"""Machines of a simulation: which are there, which lanes live where, and what becomes of these when one fails."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

import numpy as np

from elastream.simulator.containers import Containers
from elastream.simulator.engine_works import EngineTurns, Works
from elastream.simulator.group_moves import GroupMoves
from elastream.simulator.model import Model
from elastream.simulator.state import NOW, Flags, Moving
from elastream.simulator.storm_steps import StormSteps

System = EngineTurns | StormSteps


@dataclass(frozen=True)
class Failure:
    """A machine, process or thread that is gone for a while. Machines and processes have numbers in the order of their start,
    threads those of the lanes."""

    kind: Literal["machine", "process", "thread"]
    number: int
    at_s: float
    for_s: float


class Flow(Protocol):
    """The simulation that runs on the machines."""

    model: Model
    moving: Moving
    containers: Containers
    works: Works | None
    groups: GroupMoves
    system: System
    """As much of it as there are machines for."""

    def later(self, at_s: float, act: Callable[[], None]) -> None: ...

    def drop(self, lanes: Flags) -> None: ...

    def lose_works(self, lanes: Flags, hosts: Flags) -> None:
        """Works under way of these lanes, or in these hosts, did not happen."""
        ...

    def changed(self) -> None: ...


class Machines:
    """Lanes of the engine are served elsewhere when their machine fails; those of a tuple-by-tuple system wait for it."""

    def __init__(self, flow: Flow, failures: Sequence[Failure]) -> None:
        self._flow = flow
        self._whole = flow.system
        self._missing = (np.arange(len(flow.model.nodes)) >= flow.containers.machines).astype(np.int64)
        """Per machine, for how many reasons it is not there."""
        self.failing = np.zeros(len(flow.model.nodes), np.int64)
        """Per machine, how many of these are failures."""
        self._placed: set[int] = set()
        """Operators to whose lanes somebody gives homes."""
        self._operator = np.repeat(np.arange(len(flow.model.operators)), np.diff(flow.model.fixed.first)).tolist()
        self._came = False
        """True when a machine has come since the run began: lanes may follow."""
        hosts = len(flow.works.hosts) if flow.works is not None else 0
        ends = np.cumsum(flow.model.fixed.node_cores) / flow.model.fixed.node_cores.sum()
        self._bounds = np.concatenate([[0], np.rint(ends * hosts)]).astype(np.int64)
        """Where each machine's hosts begin; one more at the end."""
        self._keyed = np.repeat([o.keyed is not None for o in flow.model.operators], np.diff(flow.model.fixed.first))
        for failure in failures:
            flow.later(failure.at_s, partial(self._fails, failure))
        for failure in failures:
            flow.later(failure.at_s + failure.for_s, partial(self._returns, failure))

    def begin(self) -> None:
        """Every lane that runs has been placed."""
        self._count()
        for lane in np.flatnonzero(self._keyed).tolist():
            self.seat(lane)

    def started(self, node: int, up_s: float) -> None:
        """A machine is being started, and will be there at this second."""
        self._flow.later(up_s, partial(self._comes, node))

    def left(self, node: int) -> None:
        """A machine was given back: nobody lives there any more."""
        self._missing[node] += 1
        self._count()

    def place(self, operator: int, lane: int, node: int) -> None:
        """Have a lane of an operator live on a machine from now on."""
        if operator not in self._placed:
            self._placed.add(operator)
            for its in range(*self._flow.model.fixed.first[operator : operator + 2]):
                self.seat(its)
        if self._flow.moving.node_up[node]:
            self._flow.groups.move_lane(operator, lane, node)

    def settle(self, lane: int, node: int) -> None:
        """A lane lives on another machine: what it needs is there."""
        running = lane in self._flow.containers
        self._flow.containers.free(lane)
        place = self._flow.containers.take_in(lane, float(self._flow.moving.clock[NOW]), node)
        if not running:
            # It only drains.
            self._flow.containers.free(lane)
        self._lives(lane, place.node)

    def homes(self) -> list[int]:
        """The machine on which each lane lives; -1 when that is not there."""
        found: list[int] = np.where(
            self._flow.moving.node_up[self._flow.moving.node], self._flow.moving.node, -1
        ).tolist()
        return found

    def spread(self) -> None:
        """After a machine has come: lanes of the engine that nobody gave a home follow, until all have their share of them."""
        if not self._came or not isinstance(self._whole, EngineTurns):
            return
        for operator in range(len(self._flow.model.operators)):
            while (move := self._overdue(operator)) is not None:
                self._flow.groups.move_lane(operator, *move)
                if self._keyed[int(self._flow.model.fixed.first[operator])]:
                    # One at a time: the next follows when it has arrived.
                    break

    def _overdue(self, operator: int) -> tuple[int, int] | None:
        """A lane of an operator that shall follow, and the machine."""
        flow = self._flow
        first = int(flow.model.fixed.first[operator])
        lanes = range(first, first + int(flow.moving.asked[operator]))
        its = flow.groups.operators.get(operator)
        if operator in self._placed or (its is not None and (its.homes or its.giving)):
            return None
        cores = flow.model.fixed.node_cores
        counts = np.bincount(flow.moving.node[first : lanes.stop], minlength=len(cores))
        up = [node for node in np.flatnonzero(flow.moving.node_up).tolist() if flow.containers.takes(node)]
        if not up:
            return None
        fullest = max(up, key=lambda node: (counts[node] / cores[node], -node))
        emptiest = min(up, key=lambda node: ((counts[node] + 1) / cores[node], node))
        if counts[fullest] / cores[fullest] <= (counts[emptiest] + 1) / cores[emptiest]:
            return None
        lane = next(lane for lane in lanes if flow.moving.node[lane] == fullest)
        return lane - first, emptiest

    # -- failures

    def crash(self, node: int) -> None:
        """A machine is gone for good, now."""
        self._fails(Failure("machine", node, float(self._flow.moving.clock[NOW]), math.inf))

    def _fails(self, failure: Failure) -> None:
        flow = self._flow
        lanes = self._lanes_in(failure)
        gone = np.zeros(len(flow.moving.queued), np.bool_)
        gone[lanes] = True
        hosts = np.zeros(len(flow.works.hosts) if flow.works is not None else 0, np.bool_)
        if failure.kind == "machine":
            self._missing[failure.number] += 1
            self.failing[failure.number] += 1
            hosts[self._bounds[failure.number] : self._bounds[failure.number + 1]] = True
        if failure.kind == "process":
            flow.containers.process_down(failure.number, 1)
        self._count()
        if isinstance(flow.system, StormSteps):
            flow.drop(gone)
            for lane, (_, wait_s) in (dict.fromkeys(lanes, (None, 0.0)) | flow.groups.lost(lanes)).items():
                if failure.kind != "machine" or wait_s:
                    self._waits(lane, failure.at_s + failure.for_s + wait_s)
            return
        flow.lose_works(gone, hosts)
        if failure.kind == "thread":
            for lane in lanes:
                self._waits(lane, failure.at_s + failure.for_s)
        else:
            self._leave(lanes, failure)

    def _leave(self, lanes: Sequence[int], failure: Failure) -> None:
        """Lanes of the engine go to where a copy of their state is, or to the emptiest machine and learn it from the storage."""
        flow, now_s = self._flow, float(self._flow.moving.clock[NOW])
        found = flow.groups.lost(lanes)
        for lane in lanes:
            node, wait_s = found.get(lane, (None, 0.0))
            running = lane in flow.containers
            flow.containers.free(lane)
            place = flow.containers.take_in(lane, now_s, node)
            nobody = not flow.containers.is_up(lane)
            if not running:
                # It only drains.
                flow.containers.free(lane)
            self._waits(lane, (failure.at_s + failure.for_s if nobody else now_s) + wait_s)
            self._lives(lane, place.node)
        flow.groups.settled(lanes)

    def _returns(self, failure: Failure) -> None:
        if failure.kind == "machine":
            self.failing[failure.number] -= 1
            self._comes(failure.number)
        elif failure.kind == "process":
            self._flow.containers.process_down(failure.number, -1)

    def _comes(self, node: int) -> None:
        self._missing[node] -= 1
        self._count()
        self._came = True
        self.spread()

    def _lanes_in(self, failure: Failure) -> list[int]:
        if failure.kind == "machine":
            return self.lanes_on(failure.number)
        return sorted(self._flow.containers.lanes_in(failure.kind, failure.number))

    def lanes_on(self, node: int) -> list[int]:
        """Those that run on a machine, and those that only drain."""
        flow = self._flow
        found = set(flow.containers.lanes_in("machine", node))
        there = np.flatnonzero((flow.moving.node == node) & (flow.moving.queued > 0)).tolist()
        found |= {lane for lane in there if lane not in flow.containers}
        for its in flow.groups.operators.values():
            owning = {its.first + lane for lane in its.owners}
            found |= {lane for lane in owning if flow.moving.node[lane] == node}
        return sorted(found)

    def operator_of(self, lane: int) -> tuple[int, int]:
        """Which operator a lane belongs to, and the lane's number there."""
        operator = int(self._operator[lane])
        return operator, lane - int(self._flow.model.fixed.first[operator])

    # -- how things are

    def _waits(self, lane: int, until_s: float) -> None:
        self._flow.moving.ready_s[lane] = max(self._flow.moving.ready_s[lane], until_s)

    def _lives(self, lane: int, node: int) -> None:
        self._flow.moving.node[lane] = node
        self.seat(lane)
        self._flow.changed()

    def seat(self, lane: int) -> None:
        """Lanes that remember something, or are given homes, are served there only; the others where there is room."""
        works = self._flow.works
        if works is None:
            return
        first, end = 0, len(works.hosts)
        if self._keyed[lane] or self._operator[lane] in self._placed:
            node = int(self._flow.moving.node[lane])
            first = min(int(self._bounds[node]), end - 1)
            end = max(int(self._bounds[node + 1]), first + 1)
        works.lanes["from_host"][lane], works.lanes["to_host"][lane] = first, end

    def _count(self) -> None:
        flow = self._flow
        up = flow.moving.node_up
        up[:] = self._missing == 0
        flow.containers.down = set(np.flatnonzero(self._missing[: flow.containers.machines]).tolist())
        if not isinstance(self._whole, EngineTurns) or flow.works is None:
            return
        hosts = flow.works.hosts
        for node in range(len(up)):
            its = slice(self._bounds[node], self._bounds[node + 1])
            hosts["free_s"][its] = np.where(hosts["up"][its] < up[node], -math.inf, hosts["free_s"][its])
            hosts["up"][its] = up[node]
        share = flow.model.fixed.node_cores[up].sum() / flow.model.fixed.node_cores.sum()
        there, slots = max(1, int(hosts["up"].sum())), max(1, int(self._whole.slots * share))
        cores = max(1, int(self._whole.cores * share)) if self._whole.hosts else there
        flow.system = self._whole._replace(cores=cores, slots=slots, hosts=there if self._whole.hosts else 0)
