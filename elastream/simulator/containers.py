"""Threads, processes and machines in which replicas run. One that is missing is started, which takes its time."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from elastream.simulator.model import Node


@dataclass(frozen=True)
class Startup:
    """Seconds that each kind of container takes, and how many hold how many."""

    thread_s: float = 0.0
    process_s: float = 0.0
    machine_s: float = 0.0
    threads_per_process: int = 8
    process_gb: float = 4.0
    """The memory of a process."""
    machines: int | None = None
    """Those that run from the beginning; None: all."""


class Place(NamedTuple):
    """Where a replica is, and from when on it serves."""

    node: int
    ready_s: float


@dataclass
class _Process:
    node: int
    ready_s: float
    lanes: set[int] = field(default_factory=set)
    down: int = 0
    """For how many reasons it is not there, besides its machine."""


class Containers:
    """All of a run. A container that was started stays, and what is free is used first: a thread, a process, a machine."""

    def __init__(self, startup: Startup, nodes: Sequence[Node]) -> None:
        self._startup = startup
        self._nodes = nodes
        self.machines = len(nodes) if startup.machines is None else min(startup.machines, len(nodes))
        """So many run; they are started in their order."""
        self._processes = [_Process(node, -math.inf) for node in range(self.machines)]
        self._where: dict[int, _Process] = {}
        self.up_s = [-math.inf] * len(nodes)
        """From when on each machine that was started is there."""
        self._lanes_on = [0] * len(nodes)
        self._processes_on = [1] * self.machines + [0] * (len(nodes) - self.machines)
        self.down: set[int] = set()
        """Machines that have failed: nothing is placed there."""

    def place(self, lane: int, now_s: float) -> Place:
        """A new replica waits for all that has to be started for it, from the outermost in, by it or for another just before."""
        its = self._startup
        up = [process for process in self._processes if self._is_up(process)] or self._processes
        free = [process for process in up if len(process.lanes) < its.threads_per_process]
        room = [] if free else [node for node in range(self.machines) if self._has_room(node)]
        if free:
            process = min(free, key=lambda process: self._crowd(process.node))
        elif room:
            process = self._start(min(room, key=self._crowd), now_s)
        elif self.machines < len(self._nodes):
            self.up_s[self.machines] = now_s + its.machine_s
            process = self._start(self.machines, now_s)
            self.machines += 1
        else:
            # Everything is full: one thread more than there should be.
            process = min(up, key=lambda process: self._crowd(process.node))
        return self._put(lane, process, max(process.ready_s, now_s) + its.thread_s)

    def take_in(self, lane: int, now_s: float, node: int | None = None) -> Place:
        """A replica that runs already: in a process that is there, on this machine or on the emptiest; nothing is started."""
        there = [process for process in self._processes if node is None or process.node == node]
        up = [process for process in there if self._is_up(process) and process.ready_s <= now_s]
        process = min(
            up or there or self._processes, key=lambda process: (self._crowd(process.node), len(process.lanes))
        )
        return self._put(lane, process, max(process.ready_s, now_s))

    def __contains__(self, lane: int) -> bool:
        """True for a replica that runs."""
        return lane in self._where

    def is_up(self, lane: int) -> bool:
        """True when the process of a replica is there."""
        return self._is_up(self._where[lane])

    def process_down(self, number: int, more: int) -> None:
        """A process is not there for one more reason, or for one less."""
        if number < len(self._processes):
            self._processes[number].down += more

    def _put(self, lane: int, process: _Process, ready_s: float) -> Place:
        process.lanes.add(lane)
        self._where[lane] = process
        self._lanes_on[process.node] += 1
        return Place(process.node, ready_s)

    def _is_up(self, process: _Process) -> bool:
        return process.node not in self.down and not process.down

    def free(self, lane: int) -> None:
        process = self._where.pop(lane, None)
        if process is not None:
            process.lanes.discard(lane)
            self._lanes_on[process.node] -= 1

    def lanes_in(self, kind: str, number: int) -> Iterable[int]:
        """The replicas in a container: those of a machine, of the process that was started as this one, or one itself."""
        if kind == "machine":
            return [lane for lane, process in self._where.items() if process.node == number]
        if kind == "process":
            return list(self._processes[number].lanes) if number < len(self._processes) else ()
        return (number,) if number in self._where else ()

    def _start(self, node: int, now_s: float) -> _Process:
        self._processes.append(_Process(node, max(self.up_s[node], now_s) + self._startup.process_s))
        self._processes_on[node] += 1
        return self._processes[-1]

    def _has_room(self, node: int) -> bool:
        with_one_more_gb = (self._processes_on[node] + 1) * self._startup.process_gb
        return node not in self.down and with_one_more_gb <= self._nodes[node].memory_gb

    def _crowd(self, node: int) -> float:
        """Replicas for each core."""
        return self._lanes_on[node] / self._nodes[node].cores
