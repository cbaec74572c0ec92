"""Parts of a work that raised: which tuples or keys of it are tried next, until the cause stands alone."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from elastream.engine.messages import BuryTimer, BuryTuples, LaneRows, LaneWork, ServeWork, WakeWork
from elastream.lanes.segments import Slice

FIRST_KEYS = 64
"""Keys that are woken together to begin with: how many are to be woken is known in the store only."""


class Step(NamedTuple):
    """The part of a work that was under way when it raised."""

    lane: int
    wakes: bool
    """True while keys are woken, False while tuples are served."""


def smaller(work: LaneWork, step: Step | None, error: str, *, whole: bool) -> LaneWork | None:
    """The part of a work to try after this error; None if there is nothing left to try.

    One lane, its tuples or its keys, then half of them and half of these. A tuple or key that raises alone is to be buried.
    `whole`: tuples that a sink gets are not cut, and are buried together.
    """
    match work:
        case WakeWork():
            return _fewer_keys(work, error)
        case ServeWork():
            rows = next((rows for rows in work.lanes if step is not None and rows.lane == step.lane), work.lanes[0])
            if rows.slices and not (step is not None and step.wakes):
                return _fewer_tuples(work, rows, error, whole)
            return _keys_alone(work, rows) if work.wakes else None
        case _:
            return None


def _fewer_tuples(work: ServeWork, rows: LaneRows, error: str, whole: bool) -> LaneWork:
    count = sum(piece.rows for piece in rows.slices)
    if len(work.lanes) > 1:
        return replace(work, lanes=[rows], wakes=False)
    if whole or count == 1:
        return BuryTuples(work.id, work.operator, rows, work.planned_s, error)
    return replace(work, lanes=[rows._replace(slices=list(_head(rows.slices, count // 2)))], wakes=False)


def _keys_alone(work: ServeWork, rows: LaneRows) -> WakeWork:
    return WakeWork(
        work.id,
        work.operator,
        rows.lane,
        rows.groups,
        work.planned_s,
        work.watermark_s,
        FIRST_KEYS,
        work.computes,
        work.turn,
        work.queued,
        work.loads,
    )


def _fewer_keys(work: WakeWork, error: str) -> LaneWork:
    if work.keys > 1:
        return replace(work, keys=work.keys // 2)
    return BuryTimer(work.id, work.operator, work.lane, work.groups, work.clock_s, work.watermark_s, error)


def _head(slices: list[Slice], count: int) -> Iterator[Slice]:
    """The first `count` tuples."""
    for piece in slices:
        if count <= 0:
            return
        yield piece if piece.rows <= count else piece._replace(rows=count)
        count -= piece.rows
