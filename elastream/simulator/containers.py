"""What a new replica needs before it serves: a thread, a process for it, a machine for that. Each takes its time."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Startup:
    """Seconds that each kind of container takes, and how many hold how many."""

    thread_s: float = 0.0
    process_s: float = 0.0
    machine_s: float = 0.0
    threads_per_process: int = 8
    processes_per_machine: int = 4
    machines: int = 1
    """Those that run from the beginning."""


class Containers:
    """Threads, processes and machines in use. A container that is there stays; what is freed is used again first."""

    def __init__(self, startup: Startup, lanes: int, running: int) -> None:
        self._startup = startup
        self._used = np.zeros(lanes, np.bool_)
        self._used[:running] = True
        self._threads = running
        self._processes = -(-running // startup.threads_per_process)
        self._machines = max(startup.machines, -(-self._processes // startup.processes_per_machine))
        self._free = 0

    def start_s(self, lane: int) -> float:
        """How long a new replica takes: the sum of what has to be started for it, from the outermost in."""
        its = self._startup
        self._used[lane] = True
        if self._free:
            self._free -= 1
            return its.thread_s
        waits_s = its.thread_s
        self._threads += 1
        if self._threads > self._processes * its.threads_per_process:
            self._processes += 1
            waits_s += its.process_s
            if self._processes > self._machines * its.processes_per_machine:
                self._machines += 1
                waits_s += its.machine_s
        return waits_s

    def free(self, lane: int) -> None:
        if self._used[lane]:
            self._used[lane] = False
            self._free += 1

    @property
    def machines(self) -> int:
        return self._machines
