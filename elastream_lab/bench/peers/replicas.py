"""Replicas of all operators over time: how much they saved, and how often they were changed."""

from collections.abc import Sequence

Replicas = dict[str, int]
"""By operator."""

Change = tuple[float, Replicas]
"""The replicas since this second of a run."""


def saved(changes: Sequence[Change], seconds: float, pool: int) -> float:
    """The share of the replica seconds of whole pools that was not used. Before the first change it counts as there."""
    if not changes:
        return 0.0
    used = 0.0
    starts = [0.0, *(min(max(at, 0.0), seconds) for at, _ in changes[1:])]
    for start, end, (_, replicas) in zip(starts, [*starts[1:], seconds], changes, strict=True):
        used += (end - start) * sum(replicas.values())
    return 1 - used / (seconds * pool * len(changes[0][1]))


def add_change(changes: list[Change], at_s: float, replicas: Replicas | None) -> None:
    """Keep it only when it is one."""
    if replicas is not None and (not changes or changes[-1][1] != replicas):
        changes.append((at_s, replicas))


def rescales(changes: Sequence[Change], seconds: float) -> int:
    """Moments at which replicas changed while tuples were due."""
    return sum(0 < at <= seconds for at, _ in changes[1:])
