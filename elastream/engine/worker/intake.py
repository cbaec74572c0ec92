"""What a source's rows go through before they enter: those that came before are left out, damaged ones set aside."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from elastream.engine.worker.dead_letters import Failure, all_failed
from elastream.kafka import Once
from elastream.topology import DUE

DAMAGED = "_damaged"
"""A column that a frame may have besides its own: the text of a row that could not be read, else null."""

NAME, PART = "_name", "_part"
"""Two more: what a row is called where rows may come again, and the part of the source in which it has its order."""

EXTRA = {DAMAGED: pa.string(), NAME: pa.string(), PART: pa.string()}


def new_rows(batch: pa.RecordBatch, memory: Once) -> pa.RecordBatch:
    """Those that the memory does not know; then it knows them."""
    new = memory.are_new(batch.column(PART).to_pylist(), batch.column(NAME).to_pylist())
    rest = batch.drop_columns([NAME, PART])
    return rest if all(new) else rest.filter(pa.array(new))


def by_part(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each part of a source, in order; all together where a frame does not name parts."""
    if PART not in batch.schema.names or not batch.num_rows:
        yield "", batch
        return
    parts = batch.column(PART)
    names = pc.unique(parts).to_pylist()
    if len(names) == 1:
        yield names[0], batch
        return
    # A task reads one partition after another: a batch may have the end of one and the beginning of the next.
    for name in names:
        yield name, batch.filter(pc.equal(parts, name))


def with_due(batch: pa.RecordBatch, began_s: float) -> pa.RecordBatch:
    """A row that does not say when it was due is due when the tick began."""
    due = batch.column(DUE)
    if not due.null_count:
        return batch
    place = batch.schema.get_field_index(DUE)
    began = pa.scalar(int(began_s * 1e6)).cast(due.type)
    return batch.set_column(place, batch.schema.field(place), due.fill_null(began))


def set_aside(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[Failure]]:
    """What could be read of a batch, and what could not, of which only the text is known."""
    damaged = batch.column(DAMAGED)
    rest = batch.drop_columns([DAMAGED])
    if damaged.null_count == len(damaged):
        return rest, []
    columns = [damaged.filter(damaged.is_valid()), rest.column(DUE).filter(damaged.is_valid())]
    texts = pa.RecordBatch.from_arrays(columns, names=["text", DUE])
    failures = all_failed(texts, "the source could not read it as its columns are declared")
    return rest.filter(damaged.is_null()), failures
