"""A workload drawn with characters: arrivals, spikes and a width enter, lines of text leave.

A full block is the mean rate in the time of its column, so that the area is the number of tuples; a light one above it is
the rate of the busiest step in that time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elastream.workload.arrivals import Arrivals
from elastream.workload.counter_hash import Floats
from elastream.workload.spikes import Spike, VolumeSpike

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_LIGHT = "░"
_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
_LEAST = {"d": 4, "h": 5, "min": 30}
"""How many of a unit an axis shows at least; spikes are given in seconds, so these are kept while they can be read."""
_ROUND = (1, 2, 3, 5, 6, 10)


@dataclass(frozen=True)
class Chart:
    """Lines from top to bottom."""

    bars: tuple[str, ...]
    axis: tuple[str, ...]
    spikes: tuple[tuple[Spike, str], ...]
    """Under the axis, one line for each spike, from its onset until it is over."""

    margin: int
    """How many characters of every line are labels."""


def draw_chart(arrivals: Arrivals, spikes: Sequence[Spike], width: int, height: int = 12) -> Chart:
    """No line is longer than `width`."""
    top = arrivals.peak_per_s or 1.0
    labels = {0: short(top), height // 2: short(top * (height - height // 2) / height)}
    margin = max(map(len, labels.values())) + len("/s ┤")
    columns = max(10, width - margin)
    means, peaks = _columns(arrivals, columns)
    bars = []
    for row in range(height):
        floor, ceiling = height - row - 1, height - row
        label = f"{labels[row]}/s ┤" if row in labels else "│"
        cells = (
            _cell(mean / top * height, peak / top * height, floor, ceiling)
            for mean, peak in zip(means, peaks, strict=True)
        )
        bars.append(label.rjust(margin) + "".join(cells))
    return Chart(
        tuple(bars),
        tuple(_axis(arrivals.seconds, columns, margin)),
        tuple((spike, " " * margin + _span(spike, arrivals.seconds, columns)) for spike in spikes),
        margin,
    )


def short(value: float) -> str:
    """A number in few characters: 0.55, 7.2, 431, 12.3k, 4.5M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size * 9.995 or (unit != "k" and value >= size):
            return f"{_figures(value / size)}{unit}"
    return _figures(value)


def span_word(seconds: float) -> str:
    """A time in the unit that suits it: 45 s, 12 min, 14 d."""
    unit, size = next(((name, size) for name, size in _UNITS if seconds >= size), _UNITS[-1])
    return f"{_figures(seconds / size)} {unit}"


def spike_word(spike: Spike) -> str:
    if isinstance(spike, VolumeSpike):
        return f"{spike.magnitude:g} x tuples"
    return f"{spike.share:.0%} to {spike.hot_keys} key{'s' if spike.hot_keys > 1 else ''}"


def _columns(arrivals: Arrivals, columns: int) -> tuple[Floats, Floats]:
    edges = np.linspace(0, arrivals.seconds, columns + 1)
    means = np.diff(arrivals.counts_at(edges)) / np.diff(edges)
    rates, ends = arrivals.rates(), np.asarray(arrivals.ends_s)
    first = np.searchsorted(ends, edges[:-1], side="right") - 1
    stop = np.searchsorted(ends, edges[1:], side="left")
    peaks = np.asarray([rates[low : max(high, low + 1)].max() for low, high in zip(first, stop, strict=True)])
    return means, peaks


def _cell(mean: float, peak: float, floor: int, ceiling: int) -> str:
    eighths = round(8 * (mean - floor))
    if eighths > 0:
        return _EIGHTHS[min(8, eighths)]
    # Something that is not nothing is seen at the bottom.
    if floor == 0 and mean > 0:
        return _EIGHTHS[1]
    return _LIGHT if peak >= (floor + ceiling) / 2 else " "


def _axis(seconds: float, columns: int, margin: int) -> list[str]:
    unit, size = next(((name, size) for name, size in _UNITS if seconds >= _LEAST.get(name, 0) * size))
    whole = seconds / size
    step = _round_step(whole * 9 / columns)
    line, words = ["─"] * columns, [" "] * (columns + margin)
    for number in range(int(whole / step + 1e-9) + 1):
        place = min(columns - 1, round(number * step / whole * columns))
        word = _figures(number * step) if number else f"0 {unit}"
        start = margin + place
        if start + len(word) <= len(words):
            line[place] = "┬"
            words[start : start + len(word)] = word
    return ["0 ┼".rjust(margin) + "".join(line), "".join(words).rstrip()]


def _span(spike: Spike, seconds: float, columns: int) -> str:
    """Slopes are thin, the peak is thick."""
    onset, peak, falls, over = (min(columns - 1, int(corner / seconds * columns)) for corner in spike.corners_s)
    line = [" "] * columns
    line[onset : over + 1] = "─" * (over + 1 - onset)
    line[peak : falls + 1] = "━" * (falls + 1 - peak)
    word = spike_word(spike)
    if over + 2 + len(word) <= columns:
        return "".join(line[: over + 1]) + " " + word
    if len(word) + 1 <= onset:
        line[onset - 1 - len(word) : onset - 1] = word
    return "".join(line[: over + 1])


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _ROUND if step * power >= least)


def _figures(value: float) -> str:
    """Three figures, and no zeros that say nothing."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
