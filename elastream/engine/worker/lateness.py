"""Tuples that are too late: older than `t_out_s`, or than the watermark. The plan says by when, so a repeated work drops the same."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.engine.messages import LaneReceipt, LaneWork
from elastream.topology import DUE, KeyedState

FEW = 8
"""Up to so many due times are looked at one by one."""


def in_time(work: LaneWork, receipt: LaneReceipt, batch: pa.RecordBatch) -> pa.RecordBatch:
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


def by_event_time(state: KeyedState, work: LaneWork, receipt: LaneReceipt, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Note when the newest tuple happened, and drop those that happened before the watermark where that is asked."""
    if state.event_time is None or not batch.num_rows:
        return batch
    happened = batch.column(state.event_time)
    newest = pc.max(happened)
    if newest.is_valid:
        at_s = newest.cast(pa.timestamp("us", happened.type.tz)).value / 1e6
        receipt.event_s = at_s if receipt.event_s is None else max(receipt.event_s, at_s)
    if not state.drop_late or work.watermark_s is None:
        return batch
    oldest = pa.scalar(int(min(work.watermark_s, 2**40) * 1e6)).cast(pa.timestamp("us", happened.type.tz))
    late = pc.fill_null(pc.less(happened, oldest.cast(happened.type)), False)
    dropped = pc.sum(late).as_py() or 0
    if not dropped:
        return batch
    receipt.late += dropped
    return batch.filter(pc.invert(late))
