"""The score of a tournament: entries per policy and trace, standings over all traces, who is beaten by nobody, and the gate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from elastream.report.latency import Latencies

REFERENCE = "elastic"
"""The policy that others are judged by."""
GATE = 0.05
"""A policy may take this share of replica seconds more than the reference, and this share of all tuples more may be late."""


@dataclass(frozen=True)
class Entry:
    """How one policy did on one trace."""

    trace: str
    policy: str
    replica_seconds: float
    ratio: float
    """Its replica seconds over the clairvoyant's."""
    mean_ms: float | None
    """None, here and below: nobody knows."""
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    within: float | None
    """The share of all tuples that were finished within the target; those lost or still queued were not."""
    index: float | None
    """AI-SPS."""
    rescales: int
    """Operators that were rescaled, each as often as it was."""
    moments: int
    """Decisions that rescaled some operator, however many."""
    lost: int


@dataclass(frozen=True)
class Standing:
    """How one policy did on all traces."""

    policy: str
    replica_seconds: float
    """The mean, and so below where no other word is said."""
    ratio: float
    worst_ratio: float
    within: float | None
    least_within: float | None
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    index: float | None
    rescales: int
    """All together, and so are those below."""
    moments: int
    lost: int


def share_within(latencies: Latencies, latency_s: float, finished: int, others: int) -> float:
    """The share of all tuples that are in time; `others` never finished."""
    everything = finished + others
    return latencies.within(latency_s) * finished / everything if everything else 1.0


def standings(entries: Sequence[Entry]) -> list[Standing]:
    """In the order in which they played."""
    found = []
    for policy in dict.fromkeys(entry.policy for entry in entries):
        own = [entry for entry in entries if entry.policy == policy]
        shares = [entry.within for entry in own if entry.within is not None]
        found.append(
            Standing(
                policy,
                mean(e.replica_seconds for e in own),
                mean(e.ratio for e in own),
                max(e.ratio for e in own),
                known_mean(e.within for e in own),
                min(shares, default=None),
                known_mean(e.mean_ms for e in own),
                known_mean(e.p50_ms for e in own),
                known_mean(e.p95_ms for e in own),
                known_mean(e.p99_ms for e in own),
                known_mean(e.index for e in own),
                sum(e.rescales for e in own),
                sum(e.moments for e in own),
                sum(e.lost for e in own),
            )
        )
    return found


def known_mean(values: Iterable[float | None]) -> float | None:
    """Of those that are known; None when none is."""
    known = [value for value in values if value is not None]
    return mean(known) if known else None


def front(points: Sequence[Standing | Entry]) -> list[str]:
    """Those that nobody beats in both: cheaper and in time at least as often, or as cheap and in time more often."""
    return [p.policy for p in points if p.within is not None and not any(beats(other, p) for other in points)]


def beats(one: Standing | Entry, other: Standing | Entry) -> bool:
    if one.within is None or other.within is None:
        return False
    at_least = one.ratio <= other.ratio and one.within >= other.within
    return at_least and (one.ratio < other.ratio or one.within > other.within)


@dataclass(frozen=True)
class Gate:
    """A check for continuous integration: is a policy good enough to be merged?"""

    policy: str
    against: float
    """Its replica seconds over those of the reference, the mean over all traces."""
    within: float
    reference_within: float

    @property
    def passed(self) -> bool:
        return self.against <= 1 + GATE and self.within >= self.reference_within - GATE

    @property
    def words(self) -> str:
        return (
            f"gate: {self.policy} takes {self.against:.3f} times the replica seconds of {REFERENCE}, "
            f"{self.within:.2%} in time against {self.reference_within:.2%}: {'passed' if self.passed else 'failed'}"
        )


def judge(entries: Sequence[Entry], policy: str) -> Gate:
    by = {(entry.trace, entry.policy): entry for entry in entries}
    traces = dict.fromkeys(entry.trace for entry in entries)
    pairs = [(by[trace, policy], by[trace, REFERENCE]) for trace in traces]
    return Gate(
        policy,
        mean(one.replica_seconds / other.replica_seconds for one, other in pairs),
        known_mean(one.within for one, _ in pairs) or 0.0,
        known_mean(other.within for _, other in pairs) or 0.0,
    )
