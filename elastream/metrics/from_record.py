"""Samples of the record of a run: latencies, decisions and cost since it began."""

from collections.abc import Iterator

from elastream.metrics import catalogue as c
from elastream.metrics.catalogue import Histogram, MetricSample
from elastream.report import Record
from elastream.report.latency import Latencies, upper_s

BOUNDS = tuple(range(14, 154, 7))
"""Buckets of `report.latency` that end at a bound of the histogram, so that its counts are exact: 0.4 ms to 2 min, doubling."""


def record_samples(record: Record) -> Iterator[MetricSample]:
    """To be called where the recorder runs, in the thread of the listeners: a record changes with every tick."""
    yield MetricSample(c.LATENCY, (), histogram(record.latencies))
    yield MetricSample(c.DECISIONS, (), record.healths.total)
    yield MetricSample(c.RESCALES, (), record.rescales.total)
    if record.fleet:
        yield MetricSample(c.COST, (), record.fleet[-1].cost_per_hour)
    if record.cpu_s is not None:
        yield MetricSample(c.RUN_CPU, (), record.cpu_s)
    if record.memory_bytes is not None:
        yield MetricSample(c.RUN_MEMORY, (), record.memory_bytes)


def histogram(latencies: Latencies) -> Histogram:
    """The same latencies with the bounds of the metric."""
    counts = tuple(sum(n for bucket, n in latencies.buckets.items() if bucket <= bound) for bound in BOUNDS)
    return Histogram(tuple(round(upper_s(bound), 6) for bound in BOUNDS), counts, latencies.count, latencies.sum_s)
