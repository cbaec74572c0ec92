"""A look in short: what came, what left and how late it was, of a look at which nothing changed."""

from collections import Counter
from typing import NamedTuple

from elastream.control.observation import Observation


class Look(NamedTuple):
    """The little that is kept of an observation when the whole of it would say nothing new. A tuple, so that JSON has no names."""

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
    def of(cls, observation: Observation) -> "Look":
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

    def and_then(self, later: "Look") -> "Look":
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

    def rounded(self) -> "Look":
        """To the millisecond: there may be hundreds in an entry of a journal."""
        return self._replace(
            ended_s=round(self.ended_s, 3), seconds=round(self.seconds, 3), latency_mean_s=round(self.latency_mean_s, 4)
        )


def shortened(looks: list[Look], most: int) -> list[Look]:
    """The same time in at most so many looks; neighbours are added up where there are more."""
    while len(looks) > most:
        pairs = [one.and_then(other) for one, other in zip(looks[::2], looks[1::2], strict=False)]
        looks = [*pairs, *looks[2 * len(pairs) :]]
    return looks
