"""When a measurement counts: once the queues are stable after a change. How long that takes is learned."""

from dataclasses import dataclass
from enum import Enum
from math import inf, sqrt

CALM = 0.1
"""Queues are calm while they change, in an interval, by no more input than arrives in this share of the latency target."""
JITTER = 2.0
"""And while they change by no more than so many times the square root of what waits, up to twice what the target allows to
wait: that much is chance. A backlog that is left over from before is none."""
SURE = 2
"""Calm intervals in a row that settle it: a backlog may pause while it drains."""
GROWING = 3
"""Intervals in a row in which queues grow as fast as ever: they will not stop."""
PATIENCE = 4.0
"""After so many times the time it usually takes, the measurement is taken as it is; but not while a backlog drains that is gone
after so many times what has drained lately."""


class Queues(Enum):
    """How the queues of all operators together went in an interval."""

    CALM = "calm"
    SHRINKING = "shrinking"
    GROWING = "growing"


@dataclass(frozen=True)
class Interval:
    """Everything about an interval that settling looks at."""

    seconds: float
    queued: int
    """At its end, with what sources have not read yet."""
    per_second: float
    """The input."""
    finished: int
    latency_s: float


@dataclass(frozen=True)
class Verdict:
    """The state of the queues, and the latency once it counts."""

    queues: Queues
    waited_s: float
    latency_s: float | None = None
    """Infinite where queues only grow; None while it is too early to say."""


class Settling:
    """Follows the queues from one change of sizes to the next."""

    def __init__(self, target_s: float) -> None:
        self._target_s, self._calm_s = target_s, target_s * CALM
        self.learned_s: float | None = None
        """From a change to the first interval of the calm, as it was lately."""
        self._queued: int | None = None
        self.begin()

    def begin(self) -> None:
        """Sizes or the input have changed: what was seen before says nothing about what comes."""
        self._seen: list[Interval] = []
        self._moves: list[Queues] = []
        self._changes_s: list[float] = []
        self._learned = False

    def look(self, interval: Interval) -> Verdict:
        move, changed_s = self._move(interval)
        self._seen.append(interval)
        self._moves.append(move)
        self._changes_s.append(changed_s)
        waited_s, run = _seconds(self._seen), self._run(move)
        if move is Queues.CALM and run >= SURE:
            self._learn(_seconds(self._seen[: len(self._seen) - run + 1]))
            return Verdict(move, waited_s, _latency(self._seen[-run:]))
        if move is Queues.GROWING and run >= GROWING and self._goes_on(self._changes_s[-run:]):
            return Verdict(move, waited_s, inf)
        if waited_s > PATIENCE * max(self.learned_s or 0.0, GROWING * interval.seconds):
            late = len(self._seen) // 2
            changed_s = sum(self._changes_s[late:])
            if changed_s > self._calm_s * (len(self._seen) - late):
                return Verdict(Queues.GROWING, waited_s, inf)
            if changed_s < 0 and interval.queued <= PATIENCE * interval.per_second * -changed_s:
                # A backlog from before: its end can be seen, and the latency until then says nothing of these sizes.
                return Verdict(Queues.SHRINKING, waited_s)
            return Verdict(move, waited_s, _latency(self._seen[late:]))
        return Verdict(move, waited_s)

    def _move(self, interval: Interval) -> tuple[Queues, float]:
        """Which way the queues went, and by how many seconds of input."""
        changed = 0 if self._queued is None else interval.queued - self._queued
        self._queued = interval.queued
        changed_s = changed / interval.per_second if interval.per_second else inf * changed if changed else 0.0
        waits = min(interval.queued, 2 * self._target_s * interval.per_second)
        if abs(changed_s) <= self._calm_s or abs(changed) <= JITTER * sqrt(waits):
            return Queues.CALM, changed_s
        return Queues.GROWING if changed > 0 else Queues.SHRINKING, changed_s

    def _goes_on(self, changes_s: list[float]) -> bool:
        """Whether queues grew by enough to miss the target, and as fast in the end as ever."""
        return sum(changes_s) >= self._target_s and changes_s[-1] >= 0.5 * max(changes_s)

    def _run(self, move: Queues) -> int:
        """How many of the newest intervals went the same way."""
        for count, earlier in enumerate(reversed(self._moves)):
            if earlier is not move:
                return count
        return len(self._moves)

    def _learn(self, took_s: float) -> None:
        """Once per change."""
        if not self._learned:
            self.learned_s = took_s if self.learned_s is None else (self.learned_s + took_s) / 2
            self._learned = True


def _seconds(intervals: list[Interval]) -> float:
    return sum(interval.seconds for interval in intervals)


def _latency(intervals: list[Interval]) -> float | None:
    finished = sum(interval.finished for interval in intervals)
    if not finished:
        return None
    return sum(interval.latency_s * interval.finished for interval in intervals) / finished
