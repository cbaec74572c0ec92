"""Streaming DataFrames as branches of the edge query: their rows enter, are routed to lanes, and receipts leave."""

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from elastream.connectors.query.task import read_routing, route_source_rows
from elastream.connectors.spark_source import EXTRA, NAME, PART, SparkSource
from elastream.engine import messages
from elastream.errors import TopologyError
from elastream.topology import DUE, Operator, stored

RECEIPT_SCHEMA = "receipt binary"

ROUTING = "elastream.routing"
"""The local property in which the driver gives a batch's routing to its tasks."""


def source_branch(operator: Operator, frame: DataFrame, program: bytes, *, timed: bool) -> DataFrame:
    """The receipts of one source, whose rows are in `frame`, as a streaming DataFrame. `timed`: event times begin here."""
    stream = operator.source
    assert isinstance(stream, SparkSource), f"source {operator.name!r} is not read by Spark"
    missing = [name for name in stream.schema.names if name not in frame.columns]
    if not frame.isStreaming or missing:
        raise TopologyError(
            f"source {operator.name!r}: expected a streaming DataFrame with columns {', '.join(stream.schema.names)}, got "
            f"{'one' if frame.isStreaming else 'a static one'} with {', '.join(frame.columns)}; mend the schema or the query"
        )
    extra = [name for name in EXTRA if name in frame.columns]
    if PART in extra and NAME not in extra and not timed:
        extra.remove(PART)
    rows = frame.select(*stream.schema.names, due_time(stream.due), *extra)
    schema = pa.schema([*stored(stream.schema), *(pa.field(name, EXTRA[name]) for name in extra)])
    return rows.mapInArrow(_router(operator.name, schema, program), RECEIPT_SCHEMA)


def due_time(column: str | None) -> Column:
    """When rows are due; without a column that says so, the tasks fill in when the batch began.

    Not Spark's current_timestamp(): it is a constant in the code that Spark generates, which would be compiled in every batch.
    """
    return (F.col(column) if column else F.lit(None)).cast("timestamp").alias(DUE)


def task_routing() -> tuple[str, int]:
    """In a task: the routing of its batch as text, and the number of its partition."""
    context = TaskContext.get()
    assert context is not None
    return context.getLocalProperty(ROUTING) or "", context.partitionId()


def receipt_row(receipt: messages.Receipt) -> pa.RecordBatch:
    return pa.record_batch([pa.array([messages.encode(receipt)], pa.binary())], names=["receipt"])


def _router(
    source: str, schema: pa.Schema, program: bytes
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def route(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        text, sender = task_routing()
        routing = read_routing(text)
        rows = (batch.cast(schema) for batch in batches)
        if routing.discard:
            for _ in rows:
                pass
            return
        yield receipt_row(route_source_rows(program, routing, source, rows, sender))

    return route
