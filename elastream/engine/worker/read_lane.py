"""Reading a lane: its slices as batches, those of one schema together."""

from collections.abc import Iterator

import pyarrow as pa

from elastream.engine.messages import LaneRows
from elastream.engine.worker.context import WorkerContext


def read_lane(context: WorkerContext, rows: LaneRows) -> Iterator[pa.RecordBatch]:
    """The tuples of a work that are of one lane, in order."""
    schemas, reader = context.schemas, context.reader
    held: list[pa.RecordBatch] = []
    key = None
    for piece in rows.slices:
        if held and piece.schema != key:
            yield _together(held)
            held = []
        key = piece.schema
        held.append(reader.read(piece, schemas[key]))
    if held:
        yield _together(held)


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of many. A work's tuples are bounded in bytes, so they fit in one."""
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
