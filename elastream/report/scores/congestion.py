"""Congestion over a run: intervals with an instance that processed too little of what it received."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class HealthSample(NamedTuple):
    """One interval: the health of the worst congested instance, 1 when none is congested."""

    t_s: float
    worst: float


def congestion_summary(samples: Sequence[HealthSample]) -> dict[str, Any] | None:
    """Over a run; None if no policy decided."""
    if not samples:
        return None
    congested = sum(sample.worst < 1.0 for sample in samples)
    return {"intervals": len(samples), "congested": congested, "healthy": 1.0 - congested / len(samples)}
