"""The interface that steps a simulation forward; the vectorised and the tuple-by-tuple simulation both keep it."""

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from elastream import rules
from elastream.simulator.containers import Containers
from elastream.simulator.engine_turns import advance_turns
from elastream.simulator.engine_works import CHANGED, EngineTurns, Works, begin_works, forget_works, stand_still
from elastream.simulator.kernel import source_due_by
from elastream.simulator.model import Model
from elastream.simulator.state import NOW, OVER, Ints, Limits, Moving
from elastream.simulator.storm_steps import StormSteps, advance_steps

System = EngineTurns | StormSteps


@dataclass(frozen=True)
class Failure:
    """A machine, process or thread that is gone for a while. Machines and processes have numbers in the order of their start,
    threads those of the lanes."""

    kind: Literal["machine", "process", "thread"]
    number: int
    at_s: float
    for_s: float


class _Turn(NamedTuple):
    at_s: float
    failure: Failure
    up: bool


class Fidelity:
    """Steps over all lanes at once."""

    def __init__(
        self,
        model: Model,
        system: System,
        limits: Limits,
        moving: Moving,
        containers: Containers,
        *,
        seed: int,
        restart_s: float,
        failures: Sequence[Failure] = (),
    ) -> None:
        self.model = model
        self.system = system
        self.containers = containers
        self.limits = limits
        self.costs = np.zeros(len(model.operators))
        """Per operator, the load that a tuple adds to a lane."""
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._restart_s = restart_s
        self._turns = [_Turn(failure.at_s, failure, up=False) for failure in failures]
        self._turns += [_Turn(failure.at_s + failure.for_s, failure, up=True) for failure in failures]
        self._turns.sort(key=_when)
        self.works: Works | None = None
        if isinstance(system, EngineTurns):
            self.works, moving = begin_works(model, moving, system)
        self.moving = moving
        for operator, size in enumerate(moving.active):
            for lane in range(int(model.fixed.first[operator]), int(model.fixed.first[operator] + size)):
                # What the run begins with has been started before.
                moving.node[lane] = containers.place(lane, -math.inf).node
        self._missing = (np.arange(len(model.nodes)) >= containers.machines).astype(np.int64)
        """Per machine, for how many reasons it is not there."""
        self._whole = system
        self._count_machines()

    @property
    def over(self) -> bool:
        return bool(self.moving.clock[OVER])

    def advance(self, until_s: float) -> None:
        """To the first moment between two steps at `until_s` or after it."""
        while self._turns and self._turns[0].at_s <= until_s and not self.over:
            turn = self._turns.pop(0)
            self.step(turn.at_s)
            self._turn(turn)
        self.step(until_s)

    def step(self, until_s: float) -> None:
        fixed, limits, moving = self.model.fixed, self.limits, self.moving
        if isinstance(self.system, EngineTurns):
            assert self.works is not None
            advance_turns(fixed, self.system, limits, moving, self.works, self.costs, until_s, self._random)
        else:
            advance_steps(fixed, self.system, limits, moving, self.costs, until_s, self._random)

    def start(self, lane: int) -> None:
        """A new replica, and what has to be started for it."""
        machines, now_s = self.containers.machines, float(self.moving.clock[NOW])
        self.moving.node[lane], self.moving.ready_s[lane] = self.containers.place(lane, now_s)
        self._changed()
        if self.containers.machines > machines:
            up_s = self.containers.up_s[machines]
            insort(self._turns, _Turn(up_s, Failure("machine", machines, now_s, up_s - now_s), up=True), key=_when)

    @property
    def slots(self) -> int:
        return self.system.slots if isinstance(self.system, EngineTurns) else len(self.moving.queued)

    def unread(self, source: int) -> int:
        """Tuples that are due and not read yet."""
        due = source_due_by(self.model.fixed, source, float(self.moving.clock[NOW]))
        return max(0, due - int(self.moving.next_of[source]))

    def behind_busy(self) -> Ints:
        """Per lane, the tuples that wait for a busy replica, or for one that is not ready."""
        queued = self.moving.queued
        if self.works is None:
            return np.maximum(queued - 1, 0)
        lanes, now_s = self.works.lanes, float(self.moving.clock[NOW])
        # A lane without a work that is due has no seat; one that is not due yet is about to be served.
        enough = queued * self.works.operators["expected_s"][lanes["operator"]] >= rules.LANE_PACE_S
        due = enough | (lanes["given_s"] + rules.LANE_PACE_S <= now_s)
        waits: Ints = np.where(lanes["taken"] > 0, queued - lanes["taken"], np.where(due, queued, 0))
        return waits

    def restart(self, *, loses: bool) -> None:
        """Everything stands still and begins again with the size that was asked for; what is queued is lost, or waits."""
        self.moving.active[:] = self.moving.asked
        if loses:
            self.drop(np.ones(len(self.moving.queued), np.bool_))
        self._stand_still(float(self.moving.clock[NOW]) + self._restart_s)

    def drop(self, lanes: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
        self.moving.dropped[lanes] += self.moving.queued[lanes]
        self.moving.queued[lanes] = 0

    def _turn(self, turn: _Turn) -> None:
        """Something goes or comes back. The engine's lanes are served elsewhere; what waits for Storm's threads is gone with them."""
        failure = turn.failure
        if failure.kind == "machine":
            self._missing[failure.number] += -1 if turn.up else 1
            self._count_machines()
        if turn.up:
            return
        lanes = np.zeros(len(self.moving.queued), np.bool_)
        lanes[list(self.containers.lanes_in(failure.kind, failure.number))] = True
        if failure.kind != "machine":
            self.moving.ready_s[lanes] = np.maximum(self.moving.ready_s[lanes], turn.at_s + failure.for_s)
        if isinstance(self.system, StormSteps):
            self.drop(lanes)
        else:
            self.lose_works(lanes)

    def lose_works(self, lanes: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
        """Works under way of these lanes did not happen."""
        if self.works is not None:
            forget_works(self.works, lanes)

    def _stand_still(self, until_s: float) -> None:
        if self.works is None:
            self.moving.clock[NOW] = until_s
        else:
            stand_still(self.works, self.moving, until_s)

    def _changed(self) -> None:
        if self.works is not None:
            self.works.clock[CHANGED] = 1.0

    def _count_machines(self) -> None:
        self.moving.node_up[:] = self._missing == 0
        self.containers.down = set(np.flatnonzero(self._missing[: self.containers.machines]).tolist())
        if isinstance(self._whole, EngineTurns):
            share = self.model.fixed.node_cores[self.moving.node_up].sum() / self.model.fixed.node_cores.sum()
            cores, slots = (max(1, int(whole * share)) for whole in (self._whole.cores, self._whole.slots))
            self.system = self._whole._replace(cores=cores, slots=slots)


def _when(turn: _Turn) -> float:
    return turn.at_s
