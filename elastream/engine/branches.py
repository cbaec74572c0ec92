"""Streaming DataFrames as branches of the query: their rows enter, are routed to lanes, and receipts leave."""

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from elastream.engine.frame_task import ROUTING
from elastream.engine.program import load_program
from elastream.engine.streams import EXTRA, Stream
from elastream.engine.task import route_batch
from elastream.engine.tick_source import RECEIPT_SCHEMA
from elastream.engine.work import TaskWork
from elastream.errors import TopologyError
from elastream.topology import DUE, Operator, stored


def branch(operator: Operator, frame: DataFrame, program: bytes) -> DataFrame:
    """The receipts of one source, whose rows are in `frame`, as a streaming DataFrame."""
    stream: Stream = operator.source
    missing = [name for name in stream.schema.names if name not in frame.columns]
    if not frame.isStreaming or missing:
        raise TopologyError(
            f"source {operator.name!r}: expected a streaming DataFrame with columns {', '.join(stream.schema.names)}, got "
            f"{'one' if frame.isStreaming else 'a static one'} with {', '.join(frame.columns)}; mend the schema or the query"
        )
    extra = [name for name in EXTRA if name in frame.columns]
    rows = frame.select(*stream.schema.names, due_time(stream.due), *extra)
    schema = pa.schema([*stored(stream.schema), *(pa.field(name, EXTRA[name]) for name in extra)])
    return rows.mapInArrow(_router(operator.name, schema, program), RECEIPT_SCHEMA)


def due_time(column: str | None) -> Column:
    """When rows are due; without a column that says so, the tasks fill in when the tick began.

    Not Spark's current_timestamp(): it is a constant in the code that Spark generates, which would be compiled in every tick.
    """
    return (F.col(column) if column else F.lit(None)).cast("timestamp").alias(DUE)


def _router(
    source: str, schema: pa.Schema, program: bytes
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def route(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        routing = context.getLocalProperty(ROUTING)
        if not routing:
            for _ in batches:
                pass
            return
        work = TaskWork.from_json(routing)
        receipt = route_batch(*load_program(program), work, source, (batch.cast(schema) for batch in batches))
        yield pa.record_batch([pa.array([receipt.to_json()])], names=["receipt"])

    return route
