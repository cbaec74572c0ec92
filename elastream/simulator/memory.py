"""Memory of simulated machines: processes and tuples that wait fill it, and a machine that has none left fails for good."""

from dataclasses import dataclass

import numpy as np

from elastream.simulator.fidelity import Fidelity
from elastream.simulator.state import NOW, Floats

KB_PER_GB = 1e6


@dataclass(frozen=True)
class Crash:
    """A machine ran out of memory."""

    t_s: float
    machine: int


class Memory:
    """`tuple_kb` is what a tuple takes that waits; 0: nobody looks."""

    def __init__(self, flow: Fidelity, tuple_kb: float) -> None:
        self._flow = flow
        self._tuple_gb = tuple_kb / KB_PER_GB
        self._most_gb = np.array([node.memory_gb for node in flow.model.nodes])
        self.crashes: list[Crash] = []

    def used_gb(self) -> Floats:
        """Per machine."""
        moving, containers = self._flow.moving, self._flow.containers
        waiting = np.bincount(moving.node, moving.queued, len(self._most_gb))
        return np.asarray(containers.process_gb() + waiting * self._tuple_gb)

    def look(self) -> None:
        """Machines without memory are gone from now on."""
        if not self._tuple_gb:
            return
        for machine in np.flatnonzero((self.used_gb() > self._most_gb) & self._flow.moving.node_up).tolist():
            self.crashes.append(Crash(float(self._flow.moving.clock[NOW]), machine))
            self._flow.machines.crash(machine)
