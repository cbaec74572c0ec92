"""A busy replica: the share of its time that it serves, and the costs of works and turns."""

import time
from dataclasses import dataclass

from elastream.connectors import sources
from elastream.topology import Topology
from elastream.workload import constant
from elastream_lab.bench.common.cpu import cpu_s
from elastream_lab.bench.common.watch import watched
from elastream_lab.bench.common.work import doze, sink_nothing


@dataclass(frozen=True)
class Busy:
    """One operator that waits 2 ms per tuple and has more to do than it can."""

    replicas: int
    share: float
    """The part of their time that its replicas serve."""
    turn_ms: float
    """CPU time of a turn of the driver that had something to do."""
    turns_per_s: float
    works_per_s: float
    cpu_ms_per_1000: float
    """CPU time of all processes per 1,000 tuples."""
    seconds: float


def measure_busy(replicas: int, warm_up_s: float, seconds: float) -> Busy:
    per_second = replicas * 2000.0
    flow = Topology("bench")
    flow.source("in", sources.replay(constant(per_second, warm_up_s + seconds + 60)))
    flow.map("busy", doze, after="in", replicas=replicas, waits=True)
    flow.sink("last", sink_nothing, after="busy", replicas=replicas)
    with watched(flow.build()) as run:
        begin = run.origin_s() + warm_up_s
        run.wait_past(begin, warm_up_s + 120)
        at, used, turns, works = time.time(), cpu_s(), run.handle.status.ticks, run.handle.status.works_sent
        run.wait_past(at + seconds, seconds + 60)
        took, used = time.time() - at, cpu_s() - used
        turns, works = run.handle.status.ticks - turns, run.handle.status.works_sent - works
        turn_ms = run.handle.status.tick_cpu_s * 1e3
        run.stop()
    inside = [tick for tick in run.ticks if at <= tick.ended_s <= at + took]
    span_s = inside[-1].ended_s - inside[0].ended_s
    busy_s = sum(tick.counts("busy").busy_s for tick in inside[1:])
    served = sum(tick.counts("busy").processed for tick in inside[1:])
    return Busy(
        replicas,
        busy_s / span_s / replicas,
        turn_ms,
        turns / took,
        works / took,
        used / served * 1e6 if served else 0.0,
        span_s,
    )
