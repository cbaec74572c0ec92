"""Samples of an observation: figures of the last interval, which a status does not have."""

from collections.abc import Iterator

from elastream.control import Observation
from elastream.metrics import catalogue as c
from elastream.metrics.catalogue import MetricSample


def observation_samples(observation: Observation) -> Iterator[MetricSample]:
    """Latency and load of the interval, limits of operators, and the lag of sources that know their parts."""
    yield MetricSample(c.SLOTS, (), observation.slots)
    if observation.finished:
        yield MetricSample(c.LATENCY_MEAN, (), observation.latency_mean_s)
        yield MetricSample(c.LATENCY_P95, (), observation.latency_p95_s)
    for operator in observation.scalable():
        name, replica_seconds = (operator.operator,), operator.replicas * observation.seconds
        yield MetricSample(c.OPERATOR_REPLICAS_MIN, name, operator.least)
        yield MetricSample(c.OPERATOR_REPLICAS_MAX, name, operator.most)
        yield MetricSample(c.OPERATOR_CPU_RATIO, name, operator.cpu_share)
        if replica_seconds > 0:
            # Works that end in an interval may have begun before it.
            yield MetricSample(c.OPERATOR_BUSY_RATIO, name, min(1.0, operator.busy_seconds / replica_seconds))
    for operator in observation.operators.values():
        for part, behind in operator.lag.items():
            yield MetricSample(c.SOURCE_LAG, (operator.operator, part), behind)
    for host in observation.hosts:
        yield MetricSample(c.HOST_BUSY_CORES, (str(host.host), host.machine), host.busy_cores)
