"""Tuples that are too late: older than `t_out_s`, or than the watermark. The plan says by when, so a repeated work drops the same.

Also event times for the driver, from which it makes watermarks.
"""

import math
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.engine.messages import LaneReceipt, ServeWork
from elastream.state.records import LAST_S
from elastream.topology import DUE, KeyedState

FEW = 8
"""Up to so many due times are looked at one by one."""

_MAX_INT64 = 2**63 - 1024
"""The largest whole number of 64 bits that is also a float."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def in_time(work: ServeWork, receipt: LaneReceipt, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Drop what is too old, and count it."""
    if work.t_out_s is None:
        return batch
    oldest = int((work.planned_s - work.t_out_s) * 1e6)
    due = batch.column(DUE)
    if len(due) <= FEW and all(due[row].value >= oldest for row in range(len(due))):
        return batch
    young = np.asarray(batch.column(DUE).view(pa.int64())) >= oldest
    if young.all():
        return batch
    receipt.late += int(batch.num_rows - young.sum())
    return batch.filter(pa.array(young))


def by_event_time(state: KeyedState, work: ServeWork, receipt: LaneReceipt, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Note when the newest tuple happened, and drop those that happened before the watermark where that is asked."""
    if state.event_time is None or not batch.num_rows:
        return batch
    happened = batch.column(state.event_time)
    at_s = _newest_s(happened)
    if at_s is not None:
        receipt.event_s = at_s if receipt.event_s is None else max(receipt.event_s, at_s)
    if not state.drop_late or work.watermark_s is None:
        return batch
    # In the column's own unit: a cast to another one could fail on some of the rows.
    oldest = math.ceil(min(work.watermark_s * _PER_SECOND[happened.type.unit], _MAX_INT64))
    late = pc.fill_null(pc.less(happened.view(pa.int64()), pa.scalar(oldest, pa.int64())), False)
    dropped = pc.sum(late).as_py() or 0
    if not dropped:
        return batch
    receipt.late += dropped
    return batch.filter(pc.invert(late))


def note_event_times(
    columns: Iterable[str], receipt: LaneReceipt, batches: Iterable[pa.RecordBatch], origin: str
) -> None:
    """Note when the newest of the rows happened that leave an operator at which event times begin."""
    for batch in batches:
        for column in columns:
            at_s = _newest_s(batch.column(column))
            if at_s is not None:
                receipt.events[column, origin] = max(at_s, receipt.events.get((column, origin), at_s))


def _newest_s(happened: pa.Array) -> float | None:
    """Seconds since 1970 of the newest; None if there is none. Times after the year 9999 do not count."""
    per_second = _PER_SECOND[happened.type.unit]
    newest = pc.max(happened)
    if newest.is_valid and newest.value > LAST_S * per_second:
        units = happened.view(pa.int64())
        newest = pc.max(
            units.filter(pc.less_equal(units, pa.scalar(int(min(LAST_S * per_second, _MAX_INT64)), pa.int64())))
        )
        return newest.as_py() / per_second if newest.is_valid else None
    return newest.value / per_second if newest.is_valid else None
