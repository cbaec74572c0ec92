"""Where the input of a run jumps: a rate enters, the spikes in it leave."""

import math
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BIN_S = 0.5
NORMAL_S = 30.0
"""Normal is the median of the input over this time before."""
LEAST_HISTORY_S = 5.0
"""Without so much before it, a spike has no stable state to compare with."""
BEGINS = 1.5
"""A spike begins above so many times the normal rate ..."""
ENDS = 1.25
"""... and ends below so many times the normal rate from before it."""
NOISE = 6.0
"""Counts vary by their square root: a spike is more than so many times that."""


@dataclass(frozen=True)
class Spike:
    """From where the input leaves its normal rate to where it is back; positions in the rate, `end` may be its length."""

    onset: int
    end: int
    injected: bool = False
    """Somebody put it there; else it was found."""


def find_spikes(per_second: Floats, step_s: float) -> list[Spike]:
    """Sudden growth only: a rate that climbs slowly is normal at each moment."""
    size = round(BIN_S / step_s)
    bins = len(per_second) // size
    rates = per_second[: bins * size].reshape(bins, size).mean(axis=1)
    # Over a second, so that one late sample is no spike.
    smooth = np.convolve(rates, [0.5, 0.5])[:bins] if bins else rates
    normal = _Newest(round(NORMAL_S / BIN_S))
    spikes: list[Spike] = []
    onset: int | None = None
    level = 0.0
    for place in range(1, bins):
        rate = float(smooth[place])
        if onset is not None:
            if rate <= ENDS * level + math.sqrt(level):
                spikes.append(Spike(_first(per_second, onset, place, size, level), place * size))
                onset = None
            continue
        if len(normal) * BIN_S >= LEAST_HISTORY_S:
            level = normal.median()
            if rate > max(BEGINS * level, level + NOISE * math.sqrt(level + 1)):
                onset = place
                continue
        normal.append(float(rates[place - 1]))
    if onset is not None:
        spikes.append(Spike(_first(per_second, onset, bins, size, level), len(per_second)))
    return spikes


class _Newest:
    """The last so many values, and their median."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: deque[float] = deque()
        self._sorted: list[float] = []

    def __len__(self) -> int:
        return len(self._values)

    def append(self, value: float) -> None:
        if len(self._values) == self._most:
            del self._sorted[bisect_left(self._sorted, self._values.popleft())]
        self._values.append(value)
        insort(self._sorted, value)

    def median(self) -> float:
        middle = len(self._sorted) // 2
        if len(self._sorted) % 2:
            return self._sorted[middle]
        return (self._sorted[middle - 1] + self._sorted[middle]) / 2


def _first(per_second: Floats, onset: int, end: int, size: int, level: float) -> int:
    """The step at which the growth began: the first above normal from two bins before it was noticed."""
    start = max(0, onset - 2) * size
    above = per_second[start : end * size] > 1.1 * level + np.sqrt(level)
    return start + int(np.argmax(above)) if above.any() else onset * size
