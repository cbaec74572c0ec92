"""What is known of a run over one interval: the same shape from an engine, a simulator or a journal."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReplicaObservation:
    """One lane over the interval."""

    lane: int
    active: bool
    received: int
    processed: int
    queued: int
    """Tuples that wait at its end."""
    busy_seconds: float


@dataclass(frozen=True)
class OperatorObservation:
    """One operator over the interval, all its lanes together and each by itself."""

    operator: str
    replicas: int
    received: int
    received_from: dict[str, int]
    """How many of them came from which predecessor."""
    processed: int
    emitted: int
    queued: int
    dropped: int
    """Failed, too late, or found a full lane."""
    busy_seconds: float
    service_seconds: float
    """Mean time a tuple takes; 0 when none was served yet."""
    lanes: tuple[ReplicaObservation, ...] = ()


@dataclass(frozen=True)
class Observation:
    """The whole graph over one interval, operators in topological order, sources included."""

    tick: int
    ended_s: float
    seconds: float
    """How long the interval is; 0 before the first tick."""
    ticks: int
    slots: int
    entered: int
    finished: int
    dropped: int
    queued: int
    latency_mean_s: float
    latency_p95_s: float
    operators: dict[str, OperatorObservation] = field(default_factory=dict)
