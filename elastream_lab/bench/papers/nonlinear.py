"""An application whose operators do not serve more in proportion to their replicas: cores, a lock, a service with a limit.

All replicas share the machine's cores, one lock and one service, whichever process they live in. Who waits for the lock or for
the service is busy meanwhile, as a replica is that waits for a database: policies that divide by service times ask for more
replicas, which wait for one another.
"""

import fcntl
import os
import struct
import tempfile
import time

import pyarrow as pa

from elastream.connectors import sources
from elastream.topology import Topology
from elastream.workload import Arrivals, constant

CPU_S = 0.001
LOCKED_S, UNLOCKED_S = 0.002, 0.018
"""Of each tuple, with the lock and without it."""
LIMIT_PER_S, ANSWER_S = 400.0, 0.02
"""The service takes no more than so many per second, and answers after this time."""
MOST = 16


def nonlinear(arrivals: Arrivals | None = None) -> Topology:
    """Three operators of each kind in a line. The lock and the service are files that go with the machine."""
    folder = tempfile.mkdtemp(prefix="elastream-nonlinear-")
    lock, service = _file(folder, "lock"), _file(folder, "service")
    flow = Topology("nonlinear")
    flow.source("events", sources.replay(arrivals or constant(100, 60.0)))
    flow.batch("compute", _compute, after="events", schema="id long", replicas=(1, MOST))
    flow.batch("update", _Update(lock), after="compute", schema="id long", replicas=(1, MOST), waits=True)
    flow.batch("ask", _Ask(service), after="update", schema="id long", replicas=(1, MOST), waits=True)
    flow.output("results", after="ask")
    return flow


def _file(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(struct.pack("d", 0.0))
    return path


def _compute(batch: pa.RecordBatch) -> pa.RecordBatch:
    ends_s = time.thread_time() + CPU_S * batch.num_rows
    while time.thread_time() < ends_s:
        pass
    return batch


class _Update:
    """Something that only one replica may change at a time."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for _ in range(batch.num_rows):
            time.sleep(UNLOCKED_S)
            with open(self._path, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                time.sleep(LOCKED_S)
        return batch


class _Ask:
    """A service that lets its callers wait when more come than it takes."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for _ in range(batch.num_rows):
            turn_s = self._turn_s()
            time.sleep(max(0.0, turn_s - time.time()) + ANSWER_S)
        return batch

    def _turn_s(self) -> float:
        """When the service takes the next call: the file has the time at which it is free."""
        with open(self._path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            free_s = float(struct.unpack("d", file.read(8))[0])
            turn_s = max(free_s, time.time())
            file.seek(0)
            file.write(struct.pack("d", turn_s + 1.0 / LIMIT_PER_S))
        return turn_s
