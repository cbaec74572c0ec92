"""A look in short: what came, what left and how late it was, of a look at which nothing changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from elastream.control.observation import Observation


@dataclass(frozen=True)
class Look:
    """The little that is kept of an observation when the whole of it would say nothing new."""

    ended_s: float
    seconds: float
    """How long the interval is that it looks at."""
    read: tuple[int, ...]
    """Tuples that each source brought in, in the order of the sources."""
    unread: tuple[int, ...]
    """Tuples that wait at each source at the end, due and not read."""
    finished: int
    dropped: int
    latency_mean_s: float
    latencies: dict[int, int]
    """Tuples that finished, by bucket of their latency; empty where that is not known."""

    @classmethod
    def of(cls, observation: Observation) -> Look:
        sources = [operator for operator in observation.operators.values() if operator.role == "source"]
        return cls(
            observation.ended_s,
            observation.seconds,
            tuple(source.processed for source in sources),
            tuple(source.queued for source in sources),
            observation.finished,
            observation.dropped,
            observation.latency_mean_s,
            observation.latencies,
        )

    def and_then(self, later: Look) -> Look:
        """Both as one."""
        finished = self.finished + later.finished
        share = later.finished / finished if finished else 1.0
        return Look(
            later.ended_s,
            self.seconds + later.seconds,
            tuple(map(sum, zip(self.read, later.read, strict=True))),
            later.unread,
            finished,
            self.dropped + later.dropped,
            (1 - share) * self.latency_mean_s + share * later.latency_mean_s,
            dict(Counter(self.latencies) + Counter(later.latencies)),
        )

    def to_json(self) -> list[Any]:
        """Without names and to the millisecond: there may be hundreds in an entry of a journal."""
        times_s = [round(self.ended_s, 3), round(self.seconds, 3)]
        counts = [self.read, self.unread, self.finished, self.dropped]
        return [*times_s, *counts, round(self.latency_mean_s, 4), list(self.latencies.items())]

    @classmethod
    def from_json(cls, document: list[Any]) -> Look:
        ended_s, seconds, read, unread, finished, dropped, mean_s, latencies = document
        return cls(ended_s, seconds, tuple(read), tuple(unread), finished, dropped, mean_s, dict(latencies))


def shortened(looks: list[Look], most: int) -> list[Look]:
    """The same time in at most so many looks; neighbours are added up where there are more."""
    while len(looks) > most:
        pairs = [one.and_then(other) for one, other in zip(looks[::2], looks[1::2], strict=False)]
        looks = [*pairs, *looks[2 * len(pairs) :]]
    return looks
