"""What is known of a run over one interval: the same shape from an engine, a simulator or a journal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from elastream.control.redirected import Redirected
from elastream.control.state_moved import StateMoved
from elastream.fleet import Level, LevelState

Role = Literal["source", "operator", "chained", "output"]
"""Only an `operator` has replicas that can be changed: a `chained` one runs in its head's, an `output` is read outside."""


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
    received_from: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    host: int = -1
    """The host in which it lives at the end of the interval; -1: in none."""

    @property
    def service_seconds(self) -> float:
        """Mean time a tuple took here; 0 when none was served."""
        return self.busy_seconds / self.processed if self.processed else 0.0


@dataclass(frozen=True)
class HostObservation:
    """One host over the interval: a process on a machine. A simulated machine is one host."""

    host: int
    machine: str
    cores: float
    """Cores that it can use at a time."""
    busy_cores: float
    """Cores that its replicas used, on the average."""
    memory_bytes: int = 0
    """That its process holds; 0: not known."""
    machine_cpu: float = 0.0
    """The share of the cores of its machine that is in use, by whatever runs there."""
    machine_memory: float = 0.0
    """The same of the memory."""

    @property
    def free_cores(self) -> float:
        return max(0.0, self.cores - self.busy_cores)


@dataclass(frozen=True)
class OperatorObservation:
    """One operator over the interval, all its lanes together and each by itself.

    What is chained to an operator is part of it: its time is in `busy_seconds`, its output in `emitted`.
    """

    operator: str
    replicas: int
    received: int
    received_from: dict[str, int]
    """How many of them came from which predecessor; every predecessor is named."""
    processed: int
    emitted: int
    queued: int
    """Tuples that wait at the end of the interval; for a source, those that are due and not read yet."""
    dropped: int
    """Failed, too late, or found a full lane."""
    busy_seconds: float
    service_seconds: float
    """Mean time a tuple takes: over the interval, or as it was known before when none was served; 0 when never known."""
    lanes: tuple[ReplicaObservation, ...] = ()
    role: Role = "operator"
    least: int = 1
    most: int = 1
    waits: bool = False
    """Its replicas wait more than they compute: they may be threads of one process."""
    cpu_share: float = 0.0
    """The share of their busy time in which its replicas used a core."""
    length: float = 0.0
    """Tuples in front of a replica that count as a full queue: its bound, or what it serves in a second; 0: not known."""
    by_key: bool = False
    """Keys tell which replica a tuple goes to; what waits of a key moves with it when replicas change."""
    late: int = 0
    """Of those dropped, older than `t_out_s` or than the watermark."""
    lag: dict[str, int] = field(default_factory=dict)
    """For a source in parts, such as a topic's partitions: tuples that were there, not read, at the end of the tick before."""


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
    state_moves: tuple[StateMoved, ...] = ()
    """What became of the states of operators whose replicas changed, of changes that ended in this interval."""
    hosts: tuple[HostObservation, ...] = ()
    redirections: tuple[Redirected, ...] = ()
    """Tuples that were sent elsewhere because of load, of this interval."""
    fleet: tuple[LevelState, ...] = ()
    """Seats, hosts and executors at its end, as far as there is a fleet."""
    latencies: dict[int, int] = field(default_factory=dict)
    """Tuples that finished, by bucket of their latency as in `report.latency`; empty where that is not known."""
    failed: int = 0
    """Of the dropped, those that went to the dead letters."""

    @property
    def input(self) -> int:
        """Tuples that came in from outside."""
        return sum(o.processed for o in self.operators.values() if o.role == "source")

    def scalable(self) -> Iterator[OperatorObservation]:
        """The operators with replicas of their own, in topological order."""
        return (o for o in self.operators.values() if o.role == "operator")

    def level(self, level: Level) -> LevelState | None:
        """The containers of a level, where the plant has them."""
        return next((state for state in self.fleet if state.level is level), None)
