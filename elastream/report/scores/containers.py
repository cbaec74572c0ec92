"""Containers over a run: how many were planned, asked for and there, how long one took to come, what they cost."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

MANY_SEATS = 256
"""As many as nobody counts: a host has them until somebody decides."""


class LevelCount(NamedTuple):
    """One level at the end of an interval."""

    planned: int
    asked: int
    there: int
    start_s: float
    measured: int
    problem: str = ""


class FleetSample(NamedTuple):
    """All levels at the end of an interval."""

    t_s: float
    levels: dict[str, LevelCount]
    cost_per_hour: float = 0.0


def fleet_summary(samples: Sequence[FleetSample]) -> dict[str, Any] | None:
    """Per level: container seconds, the fewest and the most, the start-up time; and what all cost. None without a fleet."""
    if not samples or not samples[-1].levels:
        return None
    spans = [after.t_s - before.t_s for before, after in pairwise(samples)]
    levels: dict[str, Any] = {}
    for name, last in samples[-1].levels.items():
        counts = [sample.levels[name] for sample in samples if name in sample.levels]
        levels[name] = {
            "fewest": min(count.there for count in counts),
            "most": max(count.there for count in counts),
            "seconds": round(sum(c.there * s for c, s in zip(counts, spans, strict=False)), 3),
            "start_s": round(last.start_s, 4),
            "came": last.measured,
            "problem": next((count.problem for count in reversed(counts) if count.problem), ""),
        }
    cost = sum(sample.cost_per_hour * seconds / 3600.0 for sample, seconds in zip(samples, spans, strict=False))
    return {"levels": levels, "cost": round(cost, 6)}
