"""Samples of the published status of a run. The only module of this package that knows `RunStatus`."""

from collections import Counter
from collections.abc import Iterator

from elastream.engine.driver.lifecycle import Phase
from elastream.engine.driver.status import RunStatus
from elastream.metrics import catalogue as c
from elastream.metrics.catalogue import Metric, MetricSample

COUNTS: dict[str, Metric] = {
    "received": c.OPERATOR_INPUT,
    "processed": c.OPERATOR_PROCESSED,
    "emitted": c.OPERATOR_OUTPUT,
    "failed": c.OPERATOR_DEAD_LETTERS,
    "late": c.OPERATOR_LATE,
    "overflowed": c.OPERATOR_OVERFLOWED,
    "entered": c.OPERATOR_ENTERED,
    "finished": c.OPERATOR_FINISHED,
    "busy_s": c.OPERATOR_BUSY,
    "cpu_s": c.OPERATOR_CPU,
    "expired": c.OPERATOR_EXPIRED,
}
"""The fields of `OperatorCounts`."""


def status_samples(status: RunStatus) -> Iterator[MetricSample]:
    """All that a status knows. Any thread may call this: a status does not change."""
    yield from _run(status)
    yield from _operators(status)
    yield from _hosts(status)
    for source, unread in status.unread.items():
        yield MetricSample(c.SOURCE_UNREAD, (source,), unread)


def _run(status: RunStatus) -> Iterator[MetricSample]:
    for phase in Phase:
        yield MetricSample(c.RUN_PHASE, (phase.value,), float(status.phase is phase))
    yield MetricSample(c.STATUS_TIMESTAMP, (), status.at_s)
    yield MetricSample(c.ENTRIES, (), status.entry + 1)
    yield MetricSample(c.ENTRY_TIMESTAMP, (), status.entry_at_s)
    yield MetricSample(c.TICKS, (), status.ticks)
    yield MetricSample(c.TICK_CPU, (), status.tick_cpu_s)
    yield MetricSample(c.WORKS_SENT, (), status.works_sent)
    yield MetricSample(c.IN_FLIGHT, (), status.in_flight)
    yield MetricSample(c.FAILURE_KINDS, (), len(status.failures))
    yield MetricSample(c.STATE_MOVES, (), max((moved.number for moved in status.state_moves), default=0))
    if status.batch >= 0:
        yield MetricSample(c.QUERY_BATCH, (), status.batch)


def _operators(status: RunStatus) -> Iterator[MetricSample]:
    for name, counts in status.totals.items():
        for field, metric in COUNTS.items():
            yield MetricSample(metric, (name,), getattr(counts, field))
    works = Counter(work.operator for work in status.works)
    for name, replicas in status.replicas.items():
        yield MetricSample(c.OPERATOR_REPLICAS, (name,), replicas)
        yield MetricSample(c.OPERATOR_QUEUED, (name,), status.queued.get(name, 0))
        yield MetricSample(c.OPERATOR_WORKS, (name,), works[name])
    for name, service_s in status.service_s.items():
        yield MetricSample(c.OPERATOR_SERVICE, (name,), service_s)
    for lane, lane_status in status.lanes.items():
        yield MetricSample(c.LANE_QUEUED, (lane.operator, str(lane.lane)), lane_status.queued)


def _hosts(status: RunStatus) -> Iterator[MetricSample]:
    machines: dict[str, tuple[float, float]] = {}
    for host in status.hosts:
        labels = (str(host.number), host.machine)
        yield MetricSample(c.HOST_WORKS, labels, host.works)
        yield MetricSample(c.HOST_LEAVING, labels, float(host.leaving))
        if host.usage is not None:
            yield MetricSample(c.HOST_MEMORY, labels, host.usage.memory_bytes)
            machines[host.machine] = (host.usage.machine_cpu, host.usage.machine_memory)
    for machine, (cpu, memory) in machines.items():
        yield MetricSample(c.MACHINE_CPU, (machine,), cpu)
        yield MetricSample(c.MACHINE_MEMORY, (machine,), memory)
    for state in status.fleet:
        level = (state.level.value,)
        yield MetricSample(c.LEVEL_PLANNED, level, state.planned)
        yield MetricSample(c.LEVEL_REQUESTED, level, state.asked)
        yield MetricSample(c.LEVEL_READY, level, state.there)
        yield MetricSample(c.LEVEL_MAX, level, state.most)
        yield MetricSample(c.LEVEL_START, level, state.start_s)
