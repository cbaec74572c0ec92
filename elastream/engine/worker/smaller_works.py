"""Parts of a work that raised: which tuples or keys of it are tried next, until the cause stands alone."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from elastream.engine.messages import LaneRows, LaneWork
from elastream.lanes.segments import Slice

FIRST_KEYS = 64
"""Keys that are woken together to begin with: how many are to be woken is known in the store only."""


class Step(NamedTuple):
    """The part of a work that was under way when it raised."""

    lane: int
    wakes: bool
    """True while keys are woken, False while tuples are served."""


def smaller(work: LaneWork, step: Step | None, error: str, *, whole: bool) -> LaneWork | None:
    """The part of a work to try after this error; None when there is nothing left to try.

    One lane, its tuples or its keys, then half of them and half of these. A tuple or key that raises alone is to be buried.
    `whole`: tuples that a sink gets are not cut, and are buried together.
    """
    if work.bury:
        return None
    rows = next((rows for rows in work.lanes if step is not None and rows.lane == step.lane), work.lanes[0])
    if rows.slices and not (step is not None and step.wakes):
        return _fewer_tuples(work, rows, error, whole)
    return _fewer_keys(work, rows, error)


def _fewer_tuples(work: LaneWork, rows: LaneRows, error: str, whole: bool) -> LaneWork:
    count = sum(piece.rows for piece in rows.slices)
    if len(work.lanes) > 1:
        return replace(work, lanes=[rows], wake=0)
    if whole or count == 1:
        return replace(work, wake=0, bury=error)
    return replace(work, lanes=[rows._replace(slices=list(_head(rows.slices, count // 2)))], wake=0)


def _fewer_keys(work: LaneWork, rows: LaneRows, error: str) -> LaneWork | None:
    if work.wake == 0:
        return None
    lanes = [rows._replace(slices=[])]
    if work.wake == 1 and not any(rows.slices for rows in work.lanes):
        return replace(work, lanes=lanes, bury=error)
    return replace(work, lanes=lanes, wake=FIRST_KEYS if work.wake is None else max(1, work.wake // 2))


def _head(slices: list[Slice], count: int) -> Iterator[Slice]:
    """The first `count` tuples."""
    for piece in slices:
        if count <= 0:
            return
        yield piece if piece.rows <= count else piece._replace(rows=count)
        count -= piece.rows
