"""When tuples are due: a rate or a trace enters, the due time of the k-th tuple leaves.

Inside, a workload is the running count of tuples at the ends of its steps; within a step tuples are evenly spread.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from elastream.errors import SettingError
from elastream.workload.counter_hash import Floats
from elastream.workload.keys import EQUAL, Keys


@dataclass(frozen=True)
class Arrivals:
    """Tuples numbered from 0, each with its second since the start."""

    ends_s: tuple[float, ...]
    """Where the steps end, from 0.0 on."""

    counts: tuple[float, ...]
    """How many tuples are due by then."""

    keys: Keys = field(default=EQUAL, kw_only=True)
    """Which keys the tuples have."""

    spikes: tuple[tuple[float, float], ...] = field(default=(), kw_only=True)
    """From which second to which spikes were put onto it."""

    @cached_property
    def _ends(self) -> Floats:
        return np.asarray(self.ends_s, np.float64)

    @cached_property
    def _counts(self) -> Floats:
        return np.asarray(self.counts, np.float64)

    @property
    def total(self) -> int:
        return int(self.counts[-1] + 1e-9)

    @property
    def seconds(self) -> float:
        return self.ends_s[-1]

    @property
    def mean_per_s(self) -> float:
        return self.counts[-1] / self.ends_s[-1]

    @property
    def peak_per_s(self) -> float:
        """The rate of the busiest step."""
        return float(self.rates().max())

    def rates(self) -> Floats:
        """The rate of every step."""
        rates: Floats = np.diff(self._counts) / np.diff(self._ends)
        return rates

    def counts_at(self, seconds: Floats) -> Floats:
        """How many are due at these seconds, with parts of tuples."""
        return np.interp(seconds, self._ends, self._counts)

    def due_by(self, second: float) -> int:
        """How many are due at this second or before."""
        due = float(np.interp(second, self._ends, self._counts))
        count = min(int(due + 1e-9), self.total)
        # A time is rounded more coarsely than a count: the tuple due at this very second may look a little early.
        return count + 1 if count < self.total and self.due_times(count, count + 1)[0] <= second else count

    def due_times(self, first: int, stop: int) -> Floats:
        """The seconds at which tuples `first` to `stop - 1` are due. The k-th is due when the count reaches k + 1."""
        wanted = np.arange(first + 1, stop + 1, dtype=np.float64)
        counts, ends = self._counts, self._ends
        step = np.clip(np.searchsorted(counts, wanted - 1e-9, side="left"), 1, len(counts) - 1)
        share = (wanted - counts[step - 1]) / (counts[step] - counts[step - 1])
        times: Floats = ends[step - 1] + np.clip(share, 0.0, 1.0) * (ends[step] - ends[step - 1])
        return times

    def part(self, first: int, stop: int) -> "Arrivals":
        """Only the steps in which tuples `first` to `stop - 1` are due: small, whatever the length of the whole."""
        low, high = np.searchsorted(self._counts, [first, stop - 1e-9])
        steps = slice(max(0, int(low) - 1), int(high) + 1)
        return Arrivals(self.ends_s[steps], self.counts[steps], keys=self.keys)

    def per_second(self, second: float) -> float:
        """The rate at this second."""
        step = int(np.searchsorted(self._ends, second, side="right"))
        if step <= 0 or step >= len(self.ends_s):
            return 0.0
        return (self.counts[step] - self.counts[step - 1]) / (self.ends_s[step] - self.ends_s[step - 1])


def from_steps(ends: Floats, events: Floats, keys: Keys = EQUAL) -> Arrivals:
    """From where the steps end (the first begins at ends[0]) and how many tuples are due in each."""
    counts = np.cumsum(events)
    whole = np.round(counts[-1])
    if whole and abs(counts[-1] - whole) <= 1e-11 * whole:
        # Thousands of rounded steps end a little beside the whole number that was meant.
        counts = np.where(counts == counts[-1], whole, counts * (whole / counts[-1]))
    return Arrivals(tuple(ends.tolist()), (0.0, *counts.tolist()), keys=keys)


def paced(ends: Floats, events: Floats, speed: float, scale: float) -> Arrivals:
    """Steps with their time compressed by `speed` and their events multiplied by `scale`.

    Time passes `speed` times as fast, so that the rate does too; `scale` alone says how many tuples there are.
    """
    positive("speed", speed)
    positive("scale", scale)
    return from_steps((ends - ends[0]) / speed, events * scale)


def in_bursts(arrivals: Arrivals, every_s: float) -> Arrivals:
    """The same tuples, those of each `every_s` seconds within its first thousandth: as from a source that is filled so often."""
    positive("burst_s", every_s)
    edges = np.append(np.arange(0.0, arrivals.seconds - 1e-9 * every_s, every_s), arrivals.seconds)
    counts = arrivals.counts_at(edges)
    ends = np.column_stack([edges[:-1], edges[:-1] + np.diff(edges) / 1000]).ravel()
    return replace(
        arrivals,
        ends_s=(*ends.tolist(), arrivals.seconds),
        counts=(0.0, *np.repeat(counts[1:], 2).tolist()),
    )


def positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise SettingError(f"{name} must be more than 0 and finite, got {value}")
