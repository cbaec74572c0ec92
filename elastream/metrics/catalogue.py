"""The catalogue of metrics: the only place that says what a metric is called, counted in and means.

Names follow Prometheus: counters end in `_total`, times are in seconds, sizes in bytes, shares are ratios from 0 to 1. Counters of
tuples count since the base directory began and go on when a run is started again; other counters begin with the run.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class MetricKind(Enum):
    """As Prometheus knows them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """One entry of the catalogue."""

    name: str
    kind: MetricKind
    unit: str
    meaning: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Histogram:
    """Counts of values that are not above each bound, all values, and their sum."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    """Cumulative, one per bound."""
    count: int
    sum: float


class MetricSample(NamedTuple):
    """One value of a metric."""

    metric: Metric
    labels: tuple[str, ...]
    """The values of the labels of the metric, in their order."""
    value: float | Histogram


def _counter(name: str, unit: str, meaning: str, *labels: str) -> Metric:
    return Metric(f"elastream_{name}_total", MetricKind.COUNTER, unit, meaning, labels)


def _gauge(name: str, unit: str, meaning: str, *labels: str) -> Metric:
    return Metric(f"elastream_{name}", MetricKind.GAUGE, unit, meaning, labels)


# The run.
RUN_PHASE = _gauge(
    "run_phase", "", "1 for the phase that the run is in (starting, running, stopping, over), else 0.", "phase"
)
STATUS_TIMESTAMP = _gauge("status_timestamp_seconds", "seconds", "Unix time at which the newest status was published.")
ENTRIES = _counter("entries", "entries", "Ledger entries that were committed since the base began.")
ENTRY_TIMESTAMP = _gauge("entry_timestamp_seconds", "seconds", "Unix time of the newest ledger entry.")
TICKS = _counter("ticks", "ticks", "Ticks that the driver has made in this run.")
TICK_CPU = _gauge("tick_cpu_seconds", "seconds", "CPU time of a tick that has something to do, a moving mean.")
WORKS_SENT = _counter("works_sent", "works", "Works that the driver has sent to hosts in this run.")
IN_FLIGHT = _gauge("in_flight_tuples", "tuples", "Tuples that wait for an operator, rows in outputs left out.")
FAILURE_KINDS = _gauge(
    "failure_kinds", "kinds", "Different failures of operators so far, by operator and kind of error."
)
QUERY_BATCH = _gauge(
    "query_batch", "", "The newest batch of the Structured Streaming query; absent if there is no query."
)
LATENCY = Metric(
    "elastream_latency_seconds",
    MetricKind.HISTOGRAM,
    "seconds",
    "Time from when a tuple was due at its source until it left the topology, of all tuples of this run.",
)
LATENCY_MEAN = _gauge(
    "latency_mean_seconds", "seconds", "Mean latency of the tuples that finished in the last interval."
)
LATENCY_P95 = _gauge("latency_p95_seconds", "seconds", "The latency that 95 % of them did not exceed.")
RUN_CPU = _counter(
    "run_cpu_seconds", "seconds", "CPU time of the run on the driver's machine, Spark and its workers included."
)
RUN_MEMORY = _gauge("run_memory_max_bytes", "bytes", "The most memory that these processes have held.")

# Operators.
OPERATOR_INPUT = _counter(
    "operator_input_tuples", "tuples", "Tuples that were put into the lanes of an operator.", "operator"
)
OPERATOR_PROCESSED = _counter(
    "operator_processed_tuples", "tuples", "Tuples that an operator has served, or a source has read.", "operator"
)
OPERATOR_OUTPUT = _counter(
    "operator_output_tuples", "tuples", "Tuples that left the function of an operator.", "operator"
)
OPERATOR_ENTERED = _counter(
    "operator_entered_tuples",
    "tuples",
    "Tuples that entered the topology at an operator: read, or more than it took.",
    "operator",
)
OPERATOR_FINISHED = _counter(
    "operator_finished_tuples", "tuples", "Tuples that left the topology at an operator.", "operator"
)
OPERATOR_DEAD_LETTERS = _counter(
    "operator_dead_letter_tuples", "tuples", "Tuples on which an operator failed; they are dead letters.", "operator"
)
OPERATOR_EXPIRED = _counter(
    "operator_expired_dead_letter_tuples",
    "tuples",
    "Dead letters that were removed unread, because they were too many or too old.",
    "operator",
)
OPERATOR_LATE = _counter(
    "operator_late_tuples",
    "tuples",
    "Tuples that were dropped because they were older than the timeout or the watermark.",
    "operator",
)
OPERATOR_OVERFLOWED = _counter(
    "operator_overflowed_tuples",
    "tuples",
    "Tuples that were dropped because their lane was full, or discarded.",
    "operator",
)
OPERATOR_BUSY = _counter(
    "operator_busy_seconds", "seconds", "Time in which replicas of an operator were busy, all together.", "operator"
)
OPERATOR_CPU = _counter(
    "operator_cpu_seconds", "seconds", "CPU time that replicas of an operator have used, all together.", "operator"
)
OPERATOR_REPLICAS = _gauge("operator_replicas", "replicas", "Replicas that tuples are routed to.", "operator")
OPERATOR_REPLICAS_MIN = _gauge(
    "operator_replicas_min", "replicas", "The fewest replicas that the topology allows.", "operator"
)
OPERATOR_REPLICAS_MAX = _gauge(
    "operator_replicas_max", "replicas", "The most replicas that the topology allows.", "operator"
)
OPERATOR_QUEUED = _gauge("operator_queued_tuples", "tuples", "Tuples in the lanes of an operator.", "operator")
OPERATOR_SERVICE = _gauge(
    "operator_service_seconds", "seconds", "Estimated time that a replica takes per tuple.", "operator"
)
OPERATOR_BUSY_RATIO = _gauge(
    "operator_busy_ratio",
    "ratio",
    "Share of the last interval in which the replicas of an operator were busy.",
    "operator",
)
OPERATOR_CPU_RATIO = _gauge(
    "operator_cpu_ratio", "ratio", "Share of its busy time in which an operator used a core.", "operator"
)
OPERATOR_WORKS = _gauge("operator_works", "works", "Works of an operator that hosts have not finished.", "operator")
LANE_QUEUED = _gauge("lane_queued_tuples", "tuples", "Tuples in one lane.", "operator", "lane")

# Sources.
SOURCE_UNREAD = _gauge("source_unread_tuples", "tuples", "Tuples of a source that are due and not read.", "source")
SOURCE_LAG = _gauge(
    "source_lag_tuples",
    "tuples",
    "The same for one part of a source, such as a partition of a topic.",
    "source",
    "part",
)

# Hosts and containers.
HOST_WORKS = _gauge("host_works", "works", "Works that a host has not finished.", "host", "machine")
HOST_LEAVING = _gauge("host_leaving", "", "1 for a host that hands over its lanes and ends, else 0.", "host", "machine")
HOST_MEMORY = _gauge("host_memory_bytes", "bytes", "Memory that the process of a host holds.", "host", "machine")
HOST_BUSY_CORES = _gauge(
    "host_busy_cores",
    "cores",
    "Cores that the replicas in a host used in the last interval, a mean.",
    "host",
    "machine",
)
MACHINE_CPU = _gauge(
    "machine_cpu_ratio", "ratio", "Share of the cores of a machine that is in use, by any process.", "machine"
)
MACHINE_MEMORY = _gauge(
    "machine_memory_ratio", "ratio", "Share of the memory of a machine that is in use, by any process.", "machine"
)
LEVEL_PLANNED = _gauge(
    "level_planned", "containers", "Containers of a level (seat, host, executor) that were decided.", "level"
)
LEVEL_REQUESTED = _gauge("level_requested", "containers", "Containers of a level that were asked for.", "level")
LEVEL_READY = _gauge("level_ready", "containers", "Containers of a level that are there.", "level")
LEVEL_MAX = _gauge("level_max", "containers", "Containers of a level that can be had, as far as is known.", "level")
LEVEL_START = _gauge(
    "level_start_seconds", "seconds", "Time from asking for a container of a level until it is there.", "level"
)
SLOTS = _gauge("slots", "tasks", "Tasks that can run at once.")

# Control.
DECISIONS = _counter("decisions", "decisions", "Intervals of the control loop in which a policy was asked.")
RESCALES = _counter("rescales", "changes", "Changes of the replicas of an operator that took effect.")
STATE_MOVES = _counter("state_moves", "changes", "Changes of replicas whose keyed state has moved completely.")
COST = _gauge("cost_per_hour", "money", "Price of all containers that are there, by the prices of the guards.")

SECTIONS: dict[str, tuple[Metric, ...]] = {
    "Run": (
        RUN_PHASE,
        STATUS_TIMESTAMP,
        ENTRIES,
        ENTRY_TIMESTAMP,
        TICKS,
        TICK_CPU,
        WORKS_SENT,
        IN_FLIGHT,
        FAILURE_KINDS,
        QUERY_BATCH,
        LATENCY,
        LATENCY_MEAN,
        LATENCY_P95,
        RUN_CPU,
        RUN_MEMORY,
    ),
    "Operators": (
        OPERATOR_INPUT,
        OPERATOR_PROCESSED,
        OPERATOR_OUTPUT,
        OPERATOR_ENTERED,
        OPERATOR_FINISHED,
        OPERATOR_DEAD_LETTERS,
        OPERATOR_EXPIRED,
        OPERATOR_LATE,
        OPERATOR_OVERFLOWED,
        OPERATOR_BUSY,
        OPERATOR_CPU,
        OPERATOR_REPLICAS,
        OPERATOR_REPLICAS_MIN,
        OPERATOR_REPLICAS_MAX,
        OPERATOR_QUEUED,
        OPERATOR_SERVICE,
        OPERATOR_BUSY_RATIO,
        OPERATOR_CPU_RATIO,
        OPERATOR_WORKS,
        LANE_QUEUED,
    ),
    "Sources": (SOURCE_UNREAD, SOURCE_LAG),
    "Hosts and containers": (
        HOST_WORKS,
        HOST_LEAVING,
        HOST_MEMORY,
        HOST_BUSY_CORES,
        MACHINE_CPU,
        MACHINE_MEMORY,
        LEVEL_PLANNED,
        LEVEL_REQUESTED,
        LEVEL_READY,
        LEVEL_MAX,
        LEVEL_START,
        SLOTS,
    ),
    "Control": (DECISIONS, RESCALES, STATE_MOVES, COST),
}
"""For people: the parts of the reference page."""  # fmt: skip

METRICS: tuple[Metric, ...] = tuple(metric for metrics in SECTIONS.values() for metric in metrics)
