"""The start of a run: from nothing to the first tuple that has finished."""

import time
from dataclasses import dataclass

from elastream.workload import constant
from elastream_lab.bench.common.watch import finished, four_operators, watched
from elastream_lab.bench.common.work import nothing, sink_nothing


@dataclass(frozen=True)
class Start:
    """A graph of which Spark serves no part, in a process without a session."""

    session_s: float
    """Until `run` has returned, most of it Java and Spark."""
    first_tuple_s: float
    """Until the first tuple has finished."""


def measure_start() -> Start:
    graph = four_operators(constant(1000, 60), nothing, sink_nothing, replicas=2)
    began = time.monotonic()
    with watched(graph) as run:
        session_s = time.monotonic() - began
        run.wait(lambda: any(finished(tick) for tick in run.ticks), 120, "the first tuple to finish")
        return Start(session_s, time.monotonic() - began)
