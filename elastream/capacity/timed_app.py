"""The application that a machine is timed with: four operators that compute a little, and wait if told to."""

import time
from dataclasses import dataclass

import pyarrow as pa

from elastream.connectors import sources
from elastream.topology import Graph, Topology
from elastream.workload import Arrivals

NAMES = ("first", "second", "third", "fourth")
ROUNDS = 200
"""Steps of a generator of random numbers per tuple: some ten microseconds."""


@dataclass(frozen=True)
class Compute:
    """Take many steps of a generator for every tuple, then wait for each. Tuples pass unchanged."""

    wait_s: float

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for number in batch.column(0).to_pylist():
            for _ in range(ROUNDS):
                number = (number * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        if self.wait_s:
            time.sleep(batch.num_rows * self.wait_s)
        return batch


def timed_app(arrivals: Arrivals, wait_s: float, pool: int) -> Graph:
    """A line of operators, each with 1 to `pool` replicas."""
    app = Topology("timed")
    stream = app.source("numbers", sources.replay(arrivals))
    for name in NAMES:
        stream = stream.batch(name, Compute(wait_s), replicas=(1, pool), waits=wait_s > 0)
    stream.output("out")
    return app.build()
