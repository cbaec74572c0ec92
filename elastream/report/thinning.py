"""Fewer points, the same picture: long series enter, what a screen can show of them leaves."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_POINTS = 900
"""Of a line. A chart is about as many pixels wide."""

_FINEST_S = 0.5
_MOST_BINS = 4000


def outline(t: Floats, y: Floats, most: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """At most `most` points: the first, the last, and of every stretch of time the lowest and the highest."""
    if len(t) <= most:
        return t, y
    stretches = max(1, (most - 2) // 2)
    span = t[-1] - t[0]
    place = np.minimum((t - t[0]) / span * stretches, stretches - 1).astype(np.int64) if span else np.zeros(len(t), int)
    order = np.lexsort((y, place))
    begins = np.flatnonzero(np.diff(place[order], prepend=-1))
    lowest, highest = order[begins], order[np.append(begins[1:], len(order)) - 1]
    kept = np.unique(np.concatenate([[0, len(t) - 1], lowest, highest]))
    return t[kept], y[kept]


def changes(t: Floats, y: Floats, most: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """Of a line in steps, the first, the last and those at which it changes; of very many, the outline."""
    if not len(t):
        return t, y
    moved = np.diff(y, prepend=np.nan) != 0
    moved[-1] = True
    return outline(t[moved], y[moved], most)


def per_second(t: Floats, counts: Floats, until_s: float) -> tuple[Floats, Floats]:
    """Counts as a rate from 0 to `until_s`. `t` are the ends of the ticks in which they were counted.

    A tick's tuples are spread over the tick, so that ticks and bins need not agree.
    """
    if not len(t) or until_s <= 0:
        return np.zeros(0), np.zeros(0)
    finest_s = _FINEST_S if until_s < 60 else 2 * _FINEST_S
    bins = int(min(_MOST_BINS, max(1, until_s // finest_s)))
    edges = np.linspace(0.0, until_s, bins + 1)
    total = np.interp(edges, np.append(0.0, t), np.append(0.0, np.cumsum(counts)))
    return (edges[:-1] + edges[1:]) / 2, np.diff(total) / np.diff(edges)


def together(lines: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """The sum of lines in steps, at every time at which one of them has a point."""
    lines = [line for line in lines if len(line[0])]
    if not lines:
        return np.zeros(0), np.zeros(0)
    times = np.unique(np.concatenate([t for t, _ in lines]))
    return times, sum(
        (y[np.maximum(np.searchsorted(t, times, side="right") - 1, 0)] for t, y in lines), start=np.zeros(len(times))
    )
