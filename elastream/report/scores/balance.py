"""How evenly what waits is spread: load ratio and load balance (Dr-Stream, equations 5 and 6)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from elastream.rules import load_balance


class LevelSample(NamedTuple):
    """All replicas, hosts or machines at the end of one interval."""

    mean: float
    most: float
    lb: float


class LoadSample(NamedTuple):
    """A run at the end of one interval; hosts and machines where they are known."""

    t_s: float
    lanes: LevelSample
    hosts: LevelSample | None = None
    machines: LevelSample | None = None


def level_sample(ratios: Sequence[float]) -> LevelSample:
    return LevelSample(sum(ratios) / len(ratios), max(ratios), load_balance(ratios))


def load_summary(samples: Sequence[LoadSample]) -> dict[str, Any] | None:
    """Over a run: of replicas, and of hosts and machines where they are known. None if nothing was sampled."""
    if not samples:
        return None
    levels: dict[str, list[LevelSample]] = {
        "hosts": [sample.hosts for sample in samples if sample.hosts is not None],
        "machines": [sample.machines for sample in samples if sample.machines is not None],
    }
    return _summary([sample.lanes for sample in samples]) | {
        name: _summary(found) for name, found in levels.items() if found
    }


def _summary(found: Sequence[LevelSample]) -> dict[str, Any]:
    return {
        "ratio_mean": float(np.mean([sample.mean for sample in found])),
        "ratio_max": max(sample.most for sample in found),
        "fullest_mean": float(np.mean([sample.most for sample in found])),
        "lb_mean": float(np.mean([sample.lb for sample in found])),
        "lb_max": max(sample.lb for sample in found),
    }
