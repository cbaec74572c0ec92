"""The interface that steps a simulation forward; the vectorised and the tuple-by-tuple simulation both keep it."""

import math
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from elastream import rules
from elastream.simulator.containers import Containers
from elastream.simulator.due import source_due_by
from elastream.simulator.engine_turns import advance_turns
from elastream.simulator.engine_works import (
    CHANGED,
    COPYING,
    EngineTurns,
    Works,
    begin_works,
    forget_reading,
    forget_works,
    stand_still,
)
from elastream.simulator.group_moves import GroupMoves
from elastream.simulator.group_redirection import GroupRedirection
from elastream.simulator.key_groups import StateCosts
from elastream.simulator.machines import Failure, Machines, System
from elastream.simulator.model import Model
from elastream.simulator.state import LOOKS_S, NOW, OVER, Flags, Ints, Limits, Moving
from elastream.simulator.storm_steps import advance_steps
from elastream.topology.check import check_engine_groupings

__all__ = ["Failure", "Fidelity", "System"]


class _Due(NamedTuple):
    at_s: float
    act: Callable[[], None]


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
        failures: Sequence[Failure] = (),
        state: StateCosts | None = None,
    ) -> None:
        self.model = model
        self.system = system
        self.containers = containers
        self.limits = limits
        self.costs = np.zeros(len(model.operators))
        """Per operator, the load that a tuple adds to a lane."""
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._due: list[_Due] = []
        """What happens when, besides the stream; the first is next."""
        self.works: Works | None = None
        state = state or StateCosts()
        if isinstance(system, EngineTurns):
            check_engine_groupings(model.graph)
            self.works, moving = begin_works(model, moving, system)
            moving.redirect[:, LOOKS_S] = rules.REDIRECT_S
        else:
            # No other system has a ring.
            state = replace(state, ring_s=0.0)
            if limits.in_flight:
                moving = moving._replace(sent_s=np.zeros(int(model.fixed.all_counts[-1]) + 1))
        self.moving = moving
        for operator, size in enumerate(moving.active):
            for lane in range(int(model.fixed.first[operator]), int(model.fixed.first[operator] + size)):
                # What the run begins with has been started before.
                moving.node[lane] = containers.place(lane, -math.inf).node
        self.machines = Machines(self, failures)
        self.groups = GroupMoves(self, state)
        for at_s, popularity in model.heats:
            self.later(at_s, partial(self.groups.heat, popularity))
        self.redirection = GroupRedirection(self, self.groups)
        self.machines.begin()

    @property
    def over(self) -> bool:
        return bool(self.moving.clock[OVER])

    def advance(self, until_s: float) -> None:
        """To the first moment between two steps at `until_s` or after it."""
        while self._due and self._due[0].at_s <= until_s and not self.over:
            due = self._due.pop(0)
            self.step(due.at_s)
            due.act()
        self.step(until_s)

    def step(self, until_s: float) -> None:
        fixed, limits, moving = self.model.fixed, self.limits, self.moving
        # All would be compiled once more for a whole number.
        end_s = float(until_s)
        if isinstance(self.system, EngineTurns):
            assert self.works is not None
            advance_turns(fixed, self.system, limits, moving, self.works, self.costs, end_s, self._random)
        else:
            advance_steps(fixed, self.system, limits, moving, self.costs, end_s, self._random)

    def later(self, at_s: float, act: Callable[[], None]) -> None:
        """Have something happen at this second, or as soon as a step has ended after it."""
        insort(self._due, _Due(at_s, act), key=lambda due: due.at_s)

    def start(self, lane: int) -> None:
        """A new replica, and what has to be started for it."""
        machines, now_s = self.containers.machines, float(self.moving.clock[NOW])
        self.moving.node[lane], self.moving.ready_s[lane] = self.containers.place(lane, now_s)
        self.machines.seat(lane)
        self.changed()
        if self.containers.machines > machines:
            self.machines.started(machines, self.containers.up_s[machines])

    @property
    def slots(self) -> int:
        return self.system.slots if isinstance(self.system, EngineTurns) else len(self.moving.queued)

    def unread(self, source: int) -> int:
        """Tuples that are due and not read yet."""
        due = source_due_by(self.model.fixed, source, float(self.moving.clock[NOW]))
        return max(0, due - int(self.moving.next_of[source]))

    @property
    def held_back(self) -> int:
        """Tuples that are due and held back by sources, because as many are in flight as may be."""
        return sum(self.unread(source) for source in range(len(self.moving.next_of))) if self.limits.in_flight else 0

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

    def pause(self, seconds: float) -> None:
        """Serve nothing for a while. When it is over, sizes are as asked for and key groups where they shall be."""
        self.moving.active[:] = self.moving.asked
        self.groups.settle()
        self._stand_still(float(self.moving.clock[NOW]) + seconds)

    def drop(self, lanes: Flags) -> None:
        self.moving.dropped[lanes] += self.moving.queued[lanes]
        self.moving.queued[lanes] = 0

    def lose_works(self, lanes: Flags, hosts: Flags) -> None:
        """Works under way of these lanes, or in these hosts, did not happen."""
        if self.works is not None:
            computes = self.works.operators["computes"][self.works.lanes["operator"]] > 0
            forget_works(self.works, lanes | (computes & hosts[self.works.lanes["host"]]))
            forget_reading(self.works, hosts)

    # -- key groups that move

    @property
    def message_s(self) -> float:
        """How long it takes to ask a host for something and to hear of it."""
        return self.system.turn_s + 2 * self.system.hop_s if isinstance(self.system, EngineTurns) else 0.0

    def busy_until(self, lane: int) -> float:
        """When the work that a lane has under way is over; now, when it has none."""
        now_s = float(self.moving.clock[NOW])
        if self.works is None or not isinstance(self.system, EngineTurns) or not self.works.lanes["taken"][lane]:
            return now_s
        return max(now_s, float(self.works.lanes["ends_s"][lane]) + self.system.hop_s)

    def move_waiting(self, giver: int, taker: int, share: float) -> None:
        """This part of what waits in a lane waits in another one from now on."""
        taken = int(self.works.lanes["taken"][giver]) if self.works is not None else 0
        rows = round((int(self.moving.queued[giver]) - taken) * share)
        self.moving.queued[giver] -= rows
        self.moving.queued[taker] += rows
        self.changed()

    def settle(self, lane: int, node: int) -> None:
        """A lane lives on another machine from now on."""
        self.machines.settle(lane, node)

    def spread(self) -> None:
        self.machines.spread()

    def count_copies(self, seconds: float, processed: Sequence[int]) -> None:
        """Copies of keyed state take cores, as many as they took in the last interval."""
        if self.works is not None:
            self.works.clock[COPYING] = self.groups.copying_cores(seconds, processed)

    def _stand_still(self, until_s: float) -> None:
        if self.works is None:
            self.moving.clock[NOW] = until_s
        else:
            stand_still(self.works, self.moving, until_s)

    def changed(self) -> None:
        """Something was changed from outside: the driver turns at once."""
        if self.works is not None:
            self.works.clock[CHANGED] = 1.0
