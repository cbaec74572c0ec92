"""How long a tick takes, and how long a tuple takes through four operators, at a given number of lanes."""

import time
from dataclasses import dataclass

import numpy as np

from elastream.report.latency import Latencies
from elastream.workload import constant
from elastream_lab.bench.common.watch import OPERATORS, four_operators, missing, tick_s, watched
from elastream_lab.bench.common.work import nothing, sink_nothing

PER_SECOND = 1000


@dataclass(frozen=True)
class TickTimes:
    """Ticks of four operators that do nothing, at a constant rate."""

    lanes: int
    """In all four operators together."""
    p50_ms: float
    p95_ms: float
    max_ms: float
    ticks: int
    works_per_s: float
    """Lanes with little to do share one."""
    latency_mean_ms: float
    latency_p95_ms: float
    """From the time a tuple was due to the end of the fourth operator."""
    missing: int


def measure_ticks(lanes: int, warm_up: int, count: int) -> TickTimes:
    """The first `warm_up` ticks do not count; the next `count` do."""
    graph = four_operators(constant(PER_SECOND, 3600), nothing, sink_nothing, replicas=lanes // len(OPERATORS))
    with watched(graph) as run:
        run.wait_for_ticks(warm_up + 1, 120)
        began, works = time.monotonic(), run.handle.status.works_sent
        run.wait_for_ticks(warm_up + count + 1, 240)
        works_per_s = (run.handle.status.works_sent - works) / (time.monotonic() - began)
        audit = run.stop()
    measured = run.ticks[warm_up : warm_up + count + 1]
    took_ms = np.asarray(tick_s(measured)) * 1e3
    latencies = Latencies()
    for tick in measured[1:]:
        latencies.merge(tick.result.latencies)
    return TickTimes(
        lanes,
        float(np.percentile(took_ms, 50)),
        float(np.percentile(took_ms, 95)),
        float(took_ms.max()),
        len(took_ms),
        works_per_s,
        latencies.mean_s * 1e3,
        latencies.percentile_s(0.95) * 1e3,
        missing(audit),
    )
