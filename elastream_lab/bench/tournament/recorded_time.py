"""The time of a run, from its journal: look after look without gaps, what came in each, and how late tuples left."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from elastream.control import DEFAULT_TD_S, JournalEntry, Look
from elastream.errors import SettingError
from elastream.report.latency import Latencies
from elastream.workload import Arrivals
from elastream.workload.arrivals import from_steps

SAME_S = 0.01
"""Two looks that are not further apart follow one another: their times are rounded."""


@dataclass(frozen=True)
class Span:
    """A look, and when it was in seconds of the run."""

    look: Look
    from_s: float
    to_s: float
    replicas: int
    """Of all operators together."""

    @property
    def seconds(self) -> float:
        return self.to_s - self.from_s


def spans_of(entries: Sequence[JournalEntry], where: str) -> list[Span]:
    """All looks one after another, from second 0 on.

    A system that pauses to rescale is not looked at meanwhile: that is part of the run. Any other time without
    a look is time without a driver: it is cut out, and what came in it is there when the next look begins, as it was.
    """
    spans: list[Span] = []
    now_s, before = 0.0, None
    for entry in entries:
        if before is not None and entry.number > before.number + 1 and not entry.looks:
            raise SettingError(
                f"{where}: looks between intervals {before.number} and {entry.number} are not in its journal, and what came in "
                "them is not known; an older version wrote it, so record a new run"
            )
        replicas = sum(operator.replicas for operator in entry.observation.scalable())
        for number, look in enumerate(entry.all_looks):
            if look.seconds <= 0:
                continue
            still_s = _stood_still(before, look) if not number else 0.0
            to_s = now_s + still_s + look.seconds
            spans.append(Span(look, now_s, to_s, replicas))
            now_s = to_s
        before = entry
    return spans


def _stood_still(before: JournalEntry | None, look: Look) -> float:
    if before is None or not before.paused:
        return 0.0
    gap_s = look.ended_s - look.seconds - before.observation.ended_s
    changed = any(decision.rescales for decision in before.decisions)
    return gap_s if changed and gap_s > SAME_S else 0.0


def arrivals_of(spans: Sequence[Span], source: int) -> Arrivals:
    """The arrivals at one of the sources: what was read, and what was left unread, evenly over each look.

    What waits unread when the run begins comes within the first look.
    """
    read = np.cumsum([span.look.read[source] for span in spans])
    # Some sources know what is unread a tick late, so that it may seem as if tuples had gone back.
    came = np.maximum.accumulate(read + [span.look.unread[source] for span in spans])
    ends_s = np.array([0.0, *(span.to_s for span in spans)])
    return from_steps(ends_s, np.diff(came.astype(np.float64), prepend=0.0))


def interval_s(entries: Sequence[JournalEntry]) -> float:
    """The interval for policies without an own pace: the run's, unless that was its policy's own pace; then the default.

    If an older version did not write it down, it is the length of an observation.
    """
    if entries[-1].own_pace:
        return DEFAULT_TD_S
    looks = [entry.observation.seconds for entry in entries if entry.observation.seconds > 0]
    return entries[-1].td_s or round(median(looks), 2)


def mean_latency_s(spans: Sequence[Span]) -> float | None:
    """Of all tuples that finished; None when none did."""
    finished = [span.look.finished for span in spans]
    return float(np.average([span.look.latency_mean_s for span in spans], weights=finished)) if any(finished) else None


def latencies_of(spans: Sequence[Span]) -> Latencies | None:
    """Of all tuples that finished; None when that is not known: older versions wrote no more than the mean."""
    buckets: Counter[int] = Counter()
    for span in spans:
        if span.look.finished and not span.look.latencies:
            return None
        buckets.update(span.look.latencies)
    return Latencies.of_buckets(buckets, mean_latency_s(spans) or 0.0) if buckets else None
