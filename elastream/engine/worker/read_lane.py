"""Reading a lane: its slices as batches, those of one schema together."""

from collections.abc import Iterator

import pyarrow as pa

from elastream.engine.messages import LaneRows
from elastream.engine.worker.context import WorkerContext


def read_lane(context: WorkerContext, rows: LaneRows) -> Iterator[pa.RecordBatch]:
    """The tuples of a work that are of one lane, in order."""
    for _, batch in read_by_origin(context, rows, tracked=False):
        yield batch


def read_by_origin(context: WorkerContext, rows: LaneRows, *, tracked: bool) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The same with the origin of each batch, where origins are `tracked`."""
    schemas, reader = context.schemas, context.reader
    held: list[pa.RecordBatch] = []
    key, origin = None, ""
    for piece in rows.slices:
        if held and (piece.schema != key or (tracked and piece.origin != origin)):
            yield origin, _together(held)
            held = []
        key, origin = piece.schema, piece.origin if tracked else ""
        held.append(reader.read(piece, schemas[key]))
    if held:
        yield origin, _together(held)


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of many. A work's tuples are bounded in bytes, so they fit in one."""
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
