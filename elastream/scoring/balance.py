"""How evenly what waits is spread: load ratio and load balance (Dr-Stream, equations 5 and 6), of replicas instead of nodes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class LoadSample(NamedTuple):
    """All active replicas at the end of one interval."""

    t_s: float
    ratio_mean: float
    ratio_max: float
    lb: float


def load_ratio(queued: float, length: float) -> float:
    """Equation 5: the part of a queue that is full; above 1 it is overloaded."""
    return queued / length


def load_balance(ratios: Sequence[float]) -> float:
    """Equation 6: the mean distance from the mean; 0 is even."""
    return float(np.mean(np.abs(np.asarray(ratios) - np.mean(ratios)))) if len(ratios) else 0.0


def load_sample(t_s: float, ratios: Sequence[float]) -> LoadSample:
    return LoadSample(t_s, float(np.mean(ratios)), float(np.max(ratios)), load_balance(ratios))


def load_summary(samples: Sequence[LoadSample]) -> dict[str, float] | None:
    """Over a run. None if nothing was sampled."""
    if not samples:
        return None
    return {
        "ratio_mean": float(np.mean([sample.ratio_mean for sample in samples])),
        "ratio_max": max(sample.ratio_max for sample in samples),
        "lb_mean": float(np.mean([sample.lb for sample in samples])),
        "lb_max": max(sample.lb for sample in samples),
    }
