"""The fleet of a simulation: machines, processes and threads come in virtual time, or do not.

An executor is a machine of the cluster, a host a process on one, a seat a thread. Machines bring cores; processes and threads say how
many replicas there is room for. Until the first decision about containers, replicas start what they need, as `Containers` has it.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from elastream.fleet import Level, LevelState
from elastream.fleet.orders import Orders
from elastream.simulator.containers import Containers
from elastream.simulator.group_moves import GroupMoves
from elastream.simulator.machines import Machines
from elastream.simulator.state import NOW, Moving

MOST_SEATS = 64
"""Threads of a process."""

LOOKS_S = 0.2
"""A machine that hands over is looked at so often."""


class Flow(Protocol):
    """The simulation whose containers these are."""

    moving: Moving
    containers: Containers
    machines: Machines
    groups: GroupMoves

    def later(self, at_s: float, act: Callable[[], None]) -> None: ...


class SimulatedFleet:
    """Keeps the contract of `Fleet`."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        containers = flow.containers
        self._rented = list(range(containers.machines))
        """Machines in the order in which they were asked for, with those that are on their way or have failed."""
        self._leaving: list[int] = []
        """Those of them that hand over what they have."""
        its = containers.startup
        rooms = [max(1, int(node.memory_gb / its.process_gb)) if its.process_gb else 64 for node in containers.nodes]
        self._orders = {
            Level.SEAT: Orders(Level.SEAT, containers.seats, MOST_SEATS, its.thread_s, self._there(Level.SEAT)),
            Level.HOST: Orders(
                Level.HOST, len(containers.processes()), sum(rooms), its.process_s, self._there(Level.HOST)
            ),
            Level.EXECUTOR: Orders(
                Level.EXECUTOR, len(self._rented), len(containers.nodes), its.machine_s, self._there(Level.EXECUTOR)
            ),
        }
        for order in self._orders.values():
            order.due(0.0)

    def look(self) -> tuple[LevelState, ...]:
        for level in reversed(Level):
            if self._flow.containers.managed:
                self._serve(level)
            else:
                self._follow(level)
        return tuple(order.state for order in self._orders.values())

    def grow(self, level: Level, by: int) -> None:
        self._plan(level, by)

    def shrink(self, level: Level, by: int) -> None:
        self._plan(level, -by)

    @property
    def _now_s(self) -> float:
        return float(self._flow.moving.clock[NOW])

    def _plan(self, level: Level, more: int) -> None:
        if not self._flow.containers.managed:
            self.look()
            self._flow.containers.managed = True
        order = self._orders[level]
        order.plan(max(1, order.planned + more))
        self._serve(level)

    def _follow(self, level: Level) -> None:
        """Replicas started what they needed: that was planned."""
        containers = self._flow.containers
        self._rented = list(range(containers.machines))
        started = {
            Level.SEAT: containers.seats,
            Level.HOST: len(containers.processes()),
            Level.EXECUTOR: containers.machines,
        }
        order = self._orders[level]
        order.plan(started[level])
        order.due(self._now_s)
        order.saw(self._there(level), self._now_s)

    def _serve(self, level: Level) -> None:
        """See what has come; ask for what is missing, and give back what is too much."""
        order, now_s = self._orders[level], self._now_s
        before, there = order.there, self._there(level)
        order.saw(there, now_s)
        if level is not Level.SEAT and there > before:
            self._flow.machines.spread()
        if not self._waits_for_machines(level) and order.due(now_s) is not None:
            self._ask(level, order.planned)
        self._give_back(level, order.planned)
        if level is Level.EXECUTOR and there > before:
            self._serve(Level.HOST)

    def _waits_for_machines(self, level: Level) -> bool:
        """Processes are started when the machines are there that were asked for with them, or are known not to come."""
        executors = self._orders[Level.EXECUTOR]
        return level is Level.HOST and executors.there < executors.planned and not executors.problem

    def _there(self, level: Level) -> int:
        containers = self._flow.containers
        if level is Level.SEAT:
            return containers.seats
        if level is Level.HOST:
            return sum(containers.is_there(number, self._now_s) for number in containers.processes())
        return sum(bool(self._flow.moving.node_up[node]) for node in self._rented)

    # -- asking

    def _ask(self, level: Level, total: int) -> None:
        if level is Level.SEAT:
            self._flow.later(self._now_s + self._flow.containers.startup.thread_s, self._set_seats)
        elif level is Level.HOST:
            self._start_processes(total)
        else:
            self._rent_machines(total)

    def _set_seats(self) -> None:
        self._flow.containers.seats = self._orders[Level.SEAT].planned
        self._serve(Level.SEAT)

    def _rent_machines(self, total: int) -> None:
        grants = self._flow.containers.startup.grants
        while len(self._staying()) < total:
            if self._leaving:
                # One that was to go is needed again.
                self._leaving.pop()
                continue
            node = self._next_machine()
            if node is None or (grants is not None and len(self._rented) >= grants):
                return
            self._rented.append(node)
            up_s = self._flow.containers.rent(node, self._now_s)
            self._flow.machines.started(node, up_s)
            self._flow.later(up_s, partial(self._serve, Level.EXECUTOR))

    def _staying(self) -> list[int]:
        """Machines that are there or on their way, and neither leave nor have failed."""
        failing = self._flow.machines.failing
        return [node for node in self._rented if node not in self._leaving and not failing[node]]

    def _next_machine(self) -> int | None:
        failing = self._flow.machines.failing
        unused = (node for node in range(len(self._flow.containers.nodes)) if node not in self._rented)
        return next((node for node in unused if not failing[node]), None)

    def _start_processes(self, total: int) -> None:
        containers = self._flow.containers
        while len(self._alive()) < total:
            coming = set(containers.down)
            rooms = [node for node in self._staying() if containers.fits(node)]
            if not rooms:
                return
            # The emptiest for its cores; of those that are alike, one that is there.
            node = min(
                rooms,
                key=lambda node: (
                    len(containers.processes(node)) / containers.nodes[node].cores,
                    node in coming,
                    self._rented.index(node),
                ),
            )
            number = containers.start(node, self._now_s)
            self._flow.later(containers.ready_s(number), partial(self._serve, Level.HOST))

    def _alive(self) -> list[int]:
        """Processes that stay, on machines that stay."""
        staying = set(self._staying())
        return [
            number for number in self._flow.containers.processes() if self._flow.containers.node_of(number) in staying
        ]

    # -- giving back, last in first out

    def _give_back(self, level: Level, total: int) -> None:
        if level is Level.HOST:
            for number in self._alive()[total:]:
                self._end_process(number)
        elif level is Level.EXECUTOR:
            gone = self._staying()[total:]
            for node in reversed(gone):
                self._leaving.append(node)
                for number in self._flow.containers.processes(node):
                    self._flow.containers.leave(number)
            for node in reversed(gone):
                self._hand_over(node)

    def _end_process(self, number: int) -> None:
        """Its replicas go on in other processes; nothing of them is lost."""
        containers = self._flow.containers
        node = containers.node_of(number)
        containers.leave(number)
        for lane in list(containers.lanes_in("process", number)):
            self._move(lane, node if containers.takes(node) else None)

    def _move(self, lane: int, node: int | None) -> None:
        """To this machine, or to the emptiest that is there; a lane with state copies it first."""
        containers = self._flow.containers
        up = (node for node in self._staying() if self._flow.moving.node_up[node])
        target = containers.emptiest(up) if node is None else node
        if target is not None and target == self._flow.moving.node[lane]:
            self._flow.machines.settle(lane, target)
        elif target is not None:
            self._flow.groups.move_lane(*self._flow.machines.operator_of(lane), target)

    def _hand_over(self, node: int) -> None:
        """A machine goes when nobody lives there any more."""
        if node not in self._leaving:
            return
        lanes = self._flow.machines.lanes_on(node)
        if not lanes:
            self._leaving.remove(node)
            self._rented.remove(node)
            self._flow.machines.left(node)
            return
        for lane in lanes:
            if not self._on_its_way(lane):
                self._move(lane, None)
        self._flow.later(self._now_s + LOOKS_S, partial(self._hand_over, node))

    def _on_its_way(self, lane: int) -> bool:
        operator, number = self._flow.machines.operator_of(lane)
        groups = self._flow.groups.operators.get(operator)
        return groups is not None and number in groups.homes and bool(self._flow.moving.node_up[groups.homes[number]])


def machine_cpu(busy_cores: float, cores: float) -> float:
    """The share of a machine's cores that is in use."""
    return float(np.clip(busy_cores / cores, 0.0, 1.0)) if cores else 0.0
