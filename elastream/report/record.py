"""What is written down while a run goes on."""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from elastream.report.latency import Latencies, LatencyLine
from elastream.report.scores.balance import LoadSample
from elastream.report.scores.congestion import HealthSample
from elastream.report.scores.containers import FleetSample
from elastream.report.series import Series

T = TypeVar("T")

MOST_KEPT = 50_000


class Newest(deque[T]):
    """The last that were added, however long a run is; `total` is how many there were."""

    def __init__(self) -> None:
        super().__init__(maxlen=MOST_KEPT)
        self.total = 0

    def append(self, value: T) -> None:
        self.total += 1
        super().append(value)

    def extend(self, values: Iterable[T]) -> None:
        for value in values:
            self.append(value)


@dataclass(frozen=True)
class Rescale:
    """A change of an operator's replicas, as it took effect."""

    t_s: float
    operator: str
    before: int
    after: int
    reason: str


@dataclass
class Record:
    """A run, as its report and its score need it."""

    name: str
    sources: tuple[str, ...]
    series: Series = field(default_factory=Series)
    latencies: Latencies = field(default_factory=Latencies)
    latency_line: LatencyLine = field(default_factory=LatencyLine)
    tick_ms: Newest[float] = field(default_factory=Newest)
    rescale_ticks_ms: Newest[float] = field(default_factory=Newest)
    """For each change of replicas, the longest of the ticks that committed and applied it."""
    rescales: Newest[Rescale] = field(default_factory=Newest)
    pools: dict[str, int] = field(default_factory=dict)
    """The operators whose replicas can be changed, and the most each may have."""
    interval_s: float = 5.0
    """How long the intervals of the control loop are."""
    window_s: float | None = None
    """Over how long input and output are compared; None: over an interval."""
    spikes: tuple[tuple[float, float], ...] = ()
    """From when to when spikes were put onto the input, in seconds since the run began."""
    loads: Newest[LoadSample] = field(default_factory=Newest)
    fleet: Newest[FleetSample] = field(default_factory=Newest)
    healths: Newest[HealthSample] = field(default_factory=Newest)
    """Of every interval in which a policy decided."""
    policy: str = "by hand"
    state_moves: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=500))
    """Receipts of states that moved when replicas changed, each with `t_s`."""
    searches: Newest[dict[str, Any]] = field(default_factory=Newest)
    """Steps of a policy that searches, each with `t_s`: what was measured, expected, best so far, and what comes next."""
    remarks: deque[tuple[float, str, str]] = field(default_factory=lambda: deque(maxlen=50))
    """What the control loop said lately: when, of which kind (rescale, veto, error, warning), and the words."""
    warnings: list[str] = field(default_factory=list)
    """What is set so that no policy can do well."""
    crashes: list[tuple[float, str]] = field(default_factory=list)
    """When which simulated machine failed for want of memory, in words."""
    verdict: str = ""
    """The bottleneck of the run, in one line; empty if nothing was diagnosed."""
    kept: dict[str, int] = field(default_factory=dict)
    """Per output, the rows that it keeps for its readers."""
    base: str = ""
    """Where the run keeps its tuples, as it may be shown; empty of a simulated run."""
    dead_letters: dict[str, int] = field(default_factory=dict)
    """Per operator, the tuples that it failed on in this run."""
    failures: list[str] = field(default_factory=list)
    """The first failure of each kind, in words."""
    late: Counter[str] = field(default_factory=Counter)
    """Per operator, the tuples that were dropped as late so far."""
    cpu_s: float | None = None
    """CPU time of the run on the driver's machine, with Spark and its workers; None where nothing is measured."""
    memory_bytes: int | None = None
    """The most memory that these processes held."""


@dataclass(frozen=True)
class Events:
    """Where every tuple of the run is."""

    entered: int
    finished: int
    dropped: int
    """Without dead letters."""
    queued: int
    duplicates: int
    created: int = 0
    """Of those that entered, the tuples that no source read: operators made them of others."""
    dead_letters: int = 0
