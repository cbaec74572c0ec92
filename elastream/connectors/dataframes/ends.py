"""The two ends of a dataframe operator, in Python workers: lanes are read for Spark, and what it made is routed to lanes."""

import time
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.accumulators import Accumulator

from elastream.connectors.query.lane_reader import TaskReceipts
from elastream.connectors.query.source_branch import receipt_row, task_routing
from elastream.connectors.query.task import EDGE_WORK, read_lanes, read_routing, read_work, route_results
from elastream.engine import messages
from elastream.engine.messages import Receipt, problem_of
from elastream.errors import ElastreamError

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def reader(program: bytes, columns: pa.Schema, receipts: Accumulator[TaskReceipts]) -> ArrowFunction:
    """For `mapInArrow`: a row is the work of a task, what leaves are the rows of its lanes."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                began_s = time.time()
                edge = read_work(text)
                try:
                    rows, done = read_lanes(program, edge)
                    for piece in rows:
                        yield piece.cast(columns)
                    receipt = done()
                except ElastreamError as error:
                    receipt = Receipt(EDGE_WORK, problem=problem_of(error))
                lanes = " ".join(str(rows.lane) for rows in edge.work.lanes)
                receipts.add({f"read {lanes}": (messages.encode(receipt), began_s)})

    return read


def router(operator: str, program: bytes, columns: pa.Schema, receipts: Accumulator[TaskReceipts]) -> ArrowFunction:
    """For `mapInArrow`: what Spark made enters, one receipt per task leaves."""

    def route(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        text, sender = task_routing()
        routing = read_routing(text)
        made = (batch.cast(columns) for batch in batches)
        if routing.discard:
            for _ in made:
                pass
        else:
            yield receipt_row(route_results(program, routing, operator, made, sender))
        receipts.add({f"routed {sender}": (b"", time.time())})

    return route
