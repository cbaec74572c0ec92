"""Spikes by chance: a generator of random numbers enters, spikes leave.

Bodik and others (SoCC 2010) found that spikes differ in every respect: how steep, how high, how long, how many keys are hot.
So each is drawn apart from the others, and heights and numbers of hot keys have long tails. Times are parts of the run.
"""

import math

import numpy as np

from elastream.errors import SettingError
from elastream.workload.data_spikes import DataSpike
from elastream.workload.spikes import Spike, VolumeSpike

HIGHEST = 12.0
"""The greatest magnitude that is drawn."""

MOST_HOT_KEYS = 64


def random_spikes(random: np.random.Generator, seconds: float, count: int = 3) -> tuple[Spike, ...]:
    """So many events in a run of so many seconds. Each is a volume spike, a data spike, or both at the same time."""
    if not isinstance(count, int) or count < 1:
        raise SettingError(f"random spikes: count must be a whole number from 1 on, got {count}")
    spikes = [spike for _ in range(count) for spike in _event(random, seconds)]
    return tuple(sorted(spikes, key=lambda spike: spike.at_s))


def _event(random: np.random.Generator, seconds: float) -> list[Spike]:
    # Nothing but `random.random()`: of all that numpy draws, this is the same in every version.
    kind, when, length, rise, top, high, many, part, skew = (random.random() for _ in range(9))
    duration_s = seconds * _between(0.03, 0.3, length)
    time_to_peak_s = duration_s * 0.5 * rise**2
    outline = {
        "at_s": _rounded(when * (seconds - duration_s)),
        "duration_s": _rounded(duration_s),
        "time_to_peak_s": _rounded(time_to_peak_s),
        "peak_s": _rounded((duration_s - time_to_peak_s) * 0.6 * top),
    }
    spikes: list[Spike] = []
    if kind < 0.7:
        spikes.append(VolumeSpike(**outline, magnitude=_rounded(_pareto(1.5, HIGHEST, high))))
    if kind >= 0.4:
        hot_keys = int(_pareto(1.0, MOST_HOT_KEYS + 1, many, shape=0.7))
        spikes.append(
            DataSpike(**outline, hot_keys=hot_keys, share=_rounded(0.1 + 0.8 * part), skew=_rounded(0.5 * skew))
        )
    return spikes


def _between(low: float, high: float, fraction: float) -> float:
    """Every order of magnitude as likely as the others."""
    return low * math.pow(high / low, fraction)


def _pareto(low: float, high: float, fraction: float, shape: float = 1.2) -> float:
    """Pareto's distribution between two bounds: mostly near the low one."""
    return low / math.pow(1 - fraction * (1 - math.pow(low / high, shape)), 1 / shape)


def _rounded(value: float) -> float:
    """Three figures, so that a spike can be written down and typed in again."""
    tens = math.pow(10, 2 - math.floor(math.log10(value))) if value else 1.0
    # Downwards, so that parts do not become longer than the whole.
    return math.floor(value * tens) / tens
