"""When tuples are due: a rate or a trace enters, the due time of the k-th tuple leaves.

Inside, a workload is the running count of tuples at the ends of its steps; within a step tuples are evenly spread.
"""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elastream.errors import SettingError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Arrivals:
    """Tuples numbered from 0, each with its second since the start."""

    ends_s: tuple[float, ...]
    """Where the steps end, from 0.0 on."""

    counts: tuple[float, ...]
    """How many tuples are due by then."""

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
        return Arrivals(self.ends_s[steps], self.counts[steps])

    def per_second(self, second: float) -> float:
        """The rate at this second."""
        step = int(np.searchsorted(self._ends, second, side="right"))
        if step <= 0 or step >= len(self.ends_s):
            return 0.0
        return (self.counts[step] - self.counts[step - 1]) / (self.ends_s[step] - self.ends_s[step - 1])


def constant(per_second: float, seconds: float) -> Arrivals:
    """The same rate all the time."""
    _positive("per_second", per_second)
    _positive("seconds", seconds)
    return Arrivals((0.0, seconds), (0.0, per_second * seconds))


def formula(per_second: Callable[[Floats], Floats], seconds: float, step_s: float = 0.1) -> Arrivals:
    """A rate as a function of the second, for example `lambda t: 500 + 400 * np.sin(t / 10)`."""
    _positive("seconds", seconds)
    _positive("step_s", step_s)
    ends = np.append(np.arange(0.0, seconds, step_s), seconds)
    rates = np.broadcast_to(np.asarray(per_second((ends[:-1] + ends[1:]) / 2), np.float64), (len(ends) - 1,))
    if not np.all(np.isfinite(rates)) or np.any(rates < 0):
        worst = int(np.argmin(np.where(np.isfinite(rates), rates, -np.inf)))
        raise SettingError(f"rate formula: expected 0 or more per second, got {rates[worst]} at {ends[worst]:.1f} s")
    return _from_steps(ends, rates * np.diff(ends))


def from_csv(path: str | Path, *, speed: float = 1.0, scale: float = 1.0) -> Arrivals:
    """A trace file with the header `t_seconds,events`; `speed` compresses its time, `scale` multiplies its events."""
    _positive("speed", speed)
    _positive("scale", scale)
    try:
        times, events = _read(Path(path))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SettingError(f"trace {path}: expected a CSV file in UTF-8: {error}") from None
    ends = np.append(times, 2 * times[-1] - times[-2] if len(times) > 1 else times[-1] + 1.0)
    # Time passes `speed` times as fast, so that the rate does too; `scale` alone says how many tuples there are.
    return _from_steps((ends - ends[0]) / speed, events * scale)


def _from_steps(ends: Floats, events: Floats) -> Arrivals:
    counts = np.cumsum(events)
    whole = np.round(counts[-1])
    if whole and abs(counts[-1] - whole) <= 1e-11 * whole:
        # Thousands of rounded steps end a little beside the whole number that was meant.
        counts = np.where(counts == counts[-1], whole, counts * (whole / counts[-1]))
    return Arrivals(tuple(ends.tolist()), (0.0, *counts.tolist()))


def _read(path: Path) -> tuple[Floats, Floats]:
    if not path.is_file():
        raise SettingError(f"trace {path}: no such file; name a built-in trace or a CSV with t_seconds,events")
    times: list[float] = []
    events: list[float] = []
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        header = next(rows, None)
        if header != ["t_seconds", "events"]:
            raise SettingError(f"trace {path}, line 1: expected t_seconds,events, got {','.join(header or [])!r}")
        for row in rows:
            where = f"trace {path}, line {rows.line_num}"
            try:
                second, count = (float(cell) for cell in row)
            except ValueError:
                raise SettingError(f"{where}: expected two numbers, got {','.join(row)!r}") from None
            if not np.isfinite(second):
                raise SettingError(f"{where}: expected a time in seconds, got {second}")
            if count < 0 or not np.isfinite(count):
                raise SettingError(f"{where}: expected a count of 0 or more, got {count}")
            if times and second <= times[-1]:
                raise SettingError(f"{where}: time goes from {times[-1]} to {second}; sort the trace by t_seconds")
            times.append(second)
            events.append(count)
    if not times:
        raise SettingError(f"trace {path}: no line below the header; it needs at least one step")
    return np.asarray(times), np.asarray(events)


def _positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise SettingError(f"{name} must be more than 0 and finite, got {value}")
