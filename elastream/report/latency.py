"""Latencies as counts in buckets that grow by a tenth: small to send, exact to add, percentiles to 5 %."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

_GROWTH = math.log(1.1)
_LEAST_S = 1e-4

FEW = 8
"""Up to so many are put into buckets one by one: numpy would take longer to begin."""


def bucket_of(seconds: float) -> int:
    """The number of the bucket of a latency. The simulator compiles this function."""
    return math.ceil(math.log(max(seconds, _LEAST_S) / _LEAST_S) / _GROWTH)


def upper_s(bucket: int) -> float:
    """The longest latency that belongs into a bucket."""
    return _LEAST_S * math.exp(bucket * _GROWTH)


def bucket_counts(seconds: npt.NDArray[np.float64]) -> tuple[dict[int, int], float, float]:
    """How many latencies are in each bucket, their sum and the largest."""
    if len(seconds) <= FEW:
        counts: dict[int, int] = {}
        for one in seconds.tolist():
            number = bucket_of(one)
            counts[number] = counts.get(number, 0) + 1
    else:
        numbers = np.ceil(np.log(np.maximum(seconds, _LEAST_S) / _LEAST_S) / _GROWTH).astype(np.int64)
        found, many = np.unique(numbers, return_counts=True)
        counts = dict(zip(found.tolist(), many.tolist(), strict=True))
    return counts, float(seconds.sum()), float(seconds.max(initial=0.0))


@dataclass
class Latencies:
    """Counts by bucket, and the sum and the largest, which stay exact."""

    buckets: dict[int, int] = field(default_factory=dict)
    sum_s: float = 0.0
    max_s: float = 0.0

    def add(self, seconds: npt.NDArray[np.float64]) -> None:
        if len(seconds):
            self.add_counts(*bucket_counts(seconds))

    def add_counts(self, buckets: Mapping[int, int], sum_s: float, max_s: float) -> None:
        """Latencies that are in buckets already."""
        for bucket, count in buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.sum_s += sum_s
        self.max_s = max(self.max_s, max_s)

    def merge(self, other: "Latencies") -> None:
        self.add_counts(other.buckets, other.sum_s, other.max_s)

    @classmethod
    def of_buckets(cls, buckets: Mapping[int, int], mean_s: float) -> "Latencies":
        """Where only the buckets and the mean are known; the largest is as large as its bucket allows."""
        max_s = upper_s(max(buckets)) if buckets else 0.0
        return cls(dict(buckets), mean_s * sum(buckets.values()), max_s)

    @property
    def count(self) -> int:
        return sum(self.buckets.values())

    @property
    def mean_s(self) -> float:
        count = self.count
        return self.sum_s / count if count else 0.0

    def percentile_s(self, share: float) -> float:
        """The latency that `share` of the tuples did not exceed."""
        left = share * self.count
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                return min(self.max_s, _LEAST_S * math.exp((bucket - 0.5) * _GROWTH))
        return self.max_s

    def within(self, seconds: float) -> float:
        """The share of the tuples that took no longer; within a bucket they are taken as evenly spread."""
        if self.max_s <= seconds:
            return 1.0
        place = math.log(max(seconds, _LEAST_S) / _LEAST_S) / _GROWTH
        below = sum(count * min(1.0, max(0.0, place - bucket + 1)) for bucket, count in self.buckets.items())
        return below / self.count

    def summary_ms(self) -> dict[str, float]:
        """The numbers of a report, in milliseconds."""
        shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
        return {
            "mean": self.mean_s * 1e3,
            **{name: self.percentile_s(share) * 1e3 for name, share in shares.items()},
            "max": self.max_s * 1e3,
        }


@dataclass(frozen=True)
class LatencyPoint:
    """The latencies of the tuples that finished in one stretch of time."""

    t_s: float
    """Its end, in seconds since the run began."""
    count: int
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float


MOST_POINTS = 4000
"""A longer run has its neighbours merged, two into one."""


class LatencyLine:
    """Latencies over time. Stretches are merged exactly, so that percentiles of a long run stay as good."""

    def __init__(self) -> None:
        self._stretches: list[tuple[float, Latencies]] = []

    def add(self, t_s: float, latencies: Latencies) -> None:
        """What finished since the stretch before, up to `t_s`."""
        if not latencies.count:
            return
        self._stretches.append((t_s, latencies))
        if len(self._stretches) > MOST_POINTS:
            pairs = zip(self._stretches[::2], self._stretches[1::2], strict=False)
            odd = self._stretches[len(self._stretches) // 2 * 2 :]
            self._stretches = [(later, _merged(a, b)) for (_, a), (later, b) in pairs] + odd

    def points(self) -> list[LatencyPoint]:
        return [
            LatencyPoint(t_s, its.count, its.mean_s, *(its.percentile_s(share) for share in (0.5, 0.95, 0.99)))
            for t_s, its in self._stretches
        ]


def _merged(a: Latencies, b: Latencies) -> Latencies:
    merged = Latencies()
    merged.merge(a)
    merged.merge(b)
    return merged
