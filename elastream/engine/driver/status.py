"""The status of a run: a frozen value that the driver publishes, and the only thing that other threads read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from elastream.control import Redirected, StateMoved
from elastream.engine.driver.lifecycle import Phase
from elastream.engine.driver.ports import Tick
from elastream.engine.messages import Usage
from elastream.fleet import LevelState
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.segments import LaneId

NO_HOST = -1


class LaneStatus(NamedTuple):
    """One lane."""

    queued: int
    host: int
    """The host that serves it; `NO_HOST` while it has none."""


@dataclass(frozen=True)
class HostStatus:
    """One host: where it runs and what it reported last."""

    number: int
    incarnation: str
    pid: int
    machine: str
    executor: str
    leaving: bool
    works: int
    usage: Usage | None


@dataclass(frozen=True)
class WorkStatus:
    """A work that a host has not finished."""

    operator: str
    replicas: tuple[int, ...]
    rows: int
    sent_s: float
    """By the driver's monotonic clock."""
    host: int


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """A run as of one entry. Nothing in it changes after it was published."""

    entry: int = -1
    """The number of the newest entry."""
    entry_at_s: float = 0.0
    at_s: float = 0.0
    """Wall time at which it was published."""
    phase: Phase = Phase.STARTING
    stage: str = ""
    """Progress of the start in words; empty once tuples flow."""
    replicas: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[str, OperatorCounts] = field(default_factory=dict)
    """Per operator, since the base began."""
    queued: Mapping[str, int] = field(default_factory=dict)
    """Per operator, the tuples in its lanes."""
    lanes: Mapping[LaneId, LaneStatus] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    service_s: Mapping[str, float] = field(default_factory=dict)
    """Estimated seconds per tuple."""
    waits: Mapping[str, bool] = field(default_factory=dict)
    """Per operator: True if its replicas wait more than they compute."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """Per replay, the tuples that are due and not read."""
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Per source, its position."""
    watermarks: Mapping[str, float] = field(default_factory=dict)
    """Per operator with windows or timers of event time: no row that is older is expected. Seconds since 1970."""
    batch: int = -1
    """The newest batch of the Structured Streaming query; -1 if there is none."""
    hosts: tuple[HostStatus, ...] = ()
    works: tuple[WorkStatus, ...] = ()
    fleet: tuple[LevelState, ...] = ()
    state_moves: tuple[StateMoved, ...] = ()
    redirections: tuple[Redirected, ...] = ()
    failures: tuple[str, ...] = ()
    """The first failure of each operator and kind of error."""
    timed: Mapping[str, float] = field(default_factory=dict)
    """Seconds per tuple, measured before the stream began."""
    ticks: int = 0
    """Ticks that the driver has made."""
    works_sent: int = 0
    tick_cpu_s: float = 0.0
    """CPU time of a tick that has something to do."""

    @property
    def in_flight(self) -> int:
        """Tuples that wait for an operator. Rows kept in outputs for their readers are not among them."""
        return sum(rows for operator, rows in self.queued.items() if operator not in self.outputs)


class Publication(NamedTuple):
    """A status, and the ticks since the one before."""

    status: RunStatus
    ticks: tuple[Tick, ...]
