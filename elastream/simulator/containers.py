"""Threads, processes and machines in which replicas run. One that is missing is started, which takes its time."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from elastream.simulator.model import Node
from elastream.simulator.state import Floats


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
    processes: int | None = None
    """Those of each machine that runs from the beginning; None: one, and on Spark one per core."""
    grants: int | None = None
    """The most machines that are given when somebody asks for them; None: as many as there are."""


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
    leaves: bool = False
    """True: it takes no replica in, and is gone when it has none."""


class Containers:
    """All of a run. What is free is used first: a thread, a process, a machine.

    What is missing is started with a replica that needs it, and stays, until somebody decides about containers: from then on
    (`managed`) replicas make do with what there is.
    """

    def __init__(self, startup: Startup, nodes: Sequence[Node]) -> None:
        self.startup = startup
        self.nodes = nodes
        self.managed = False
        self.seats = startup.threads_per_process
        self.machines = len(nodes) if startup.machines is None else min(startup.machines, len(nodes))
        """So many run; they are started in their order."""
        each = startup.processes or 1
        self._processes = [_Process(node, -math.inf) for node in range(self.machines) for _ in range(each)]
        self._where: dict[int, _Process] = {}
        self.up_s = [-math.inf] * len(nodes)
        """From when on each machine that was started is there."""
        self._lanes_on = [0] * len(nodes)
        self._processes_on = [each] * self.machines + [0] * (len(nodes) - self.machines)
        self.down: set[int] = set()
        """Machines that have failed: nothing is placed there."""

    def place(self, lane: int, now_s: float) -> Place:
        """A new replica waits for all that has to be started for it, from the outermost in, by it or for another just before."""
        its = self.startup
        up = [process for process in self._processes if self._is_up(process)] or self._processes
        free = [process for process in up if len(process.lanes) < self.seats]
        there = [] if free or self.managed else [node for node in range(self.machines) if node not in self.down]
        room = [node for node in there if self.fits(node)]
        if free:
            process = min(free, key=lambda process: (self._crowd(process.node), len(process.lanes)))
        elif room:
            process = self._processes[self.start(min(room, key=self._crowd), now_s)]
        elif self.machines < len(self.nodes) and not self.managed:
            node = self.machines
            self.rent(node, now_s)
            process = self._processes[self.start(node, now_s)]
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

    def process_gb(self) -> Floats:
        """Per machine, the memory of its processes."""
        return np.array(self._processes_on) * self.startup.process_gb

    def _put(self, lane: int, process: _Process, ready_s: float) -> Place:
        process.lanes.add(lane)
        self._where[lane] = process
        self._lanes_on[process.node] += 1
        return Place(process.node, ready_s)

    def _is_up(self, process: _Process) -> bool:
        return process.node not in self.down and not process.down and not process.leaves

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

    # -- containers by themselves

    def rent(self, node: int, now_s: float) -> float:
        """Start a machine; gives the second at which it is there."""
        self.machines = max(self.machines, node + 1)
        self.up_s[node] = now_s + self.startup.machine_s
        return self.up_s[node]

    def start(self, node: int, now_s: float) -> int:
        """Start a process on a machine; gives its number."""
        self._processes.append(_Process(node, max(self.up_s[node], now_s) + self.startup.process_s))
        self._processes_on[node] += 1
        return len(self._processes) - 1

    def processes(self, node: int | None = None) -> list[int]:
        """The numbers of those that stay, in the order of their start: of one machine, or of all."""
        return [
            number
            for number, process in enumerate(self._processes)
            if not process.leaves and (node is None or process.node == node)
        ]

    def ready_s(self, number: int) -> float:
        """When a process is there."""
        return self._processes[number].ready_s

    def node_of(self, number: int) -> int:
        return self._processes[number].node

    def leave(self, number: int, leaves: bool = True) -> None:
        """A process takes no more replicas in, or takes some in again."""
        process = self._processes[number]
        if process.leaves != leaves:
            process.leaves = leaves
            self._processes_on[process.node] -= 1 if leaves else -1

    def is_there(self, number: int, now_s: float) -> bool:
        process = self._processes[number]
        return process.node not in self.down and not process.down and process.ready_s <= now_s

    def takes(self, node: int) -> bool:
        """True when a machine has a process that takes replicas in."""
        return self._processes_on[node] > 0

    def emptiest(self, nodes: Iterable[int]) -> int | None:
        """Of these machines, as far as they take replicas in."""
        return min((node for node in nodes if self.takes(node)), key=self._crowd, default=None)

    def memory(self, node: int) -> float:
        """The share of a machine's memory that processes hold."""
        return self._processes_on[node] * self.startup.process_gb / self.nodes[node].memory_gb

    def fits(self, node: int) -> bool:
        """True when one process more fits into a machine's memory."""
        return (self._processes_on[node] + 1) * self.startup.process_gb <= self.nodes[node].memory_gb

    def _crowd(self, node: int) -> float:
        """Replicas for each core."""
        return self._lanes_on[node] / self.nodes[node].cores
