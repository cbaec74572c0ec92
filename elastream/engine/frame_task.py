"""The two ends of a dataframe operator, in Python workers: lanes are read for Spark, and what it made is routed to lanes."""

import time
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator

from elastream.engine.program import load_program
from elastream.engine.task import read_lanes, route_results
from elastream.engine.work import Receipt, TaskWork
from elastream.engine.write_task import Receipts
from elastream.errors import ElastreamError

ROUTING = "elastream.routing"
"""The local property in which the driver gives a tick's routing to the tasks of its branches. Empty: nothing is to be routed,
for Spark repeats a batch whose results the ledger has."""

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def reader(program: bytes, columns: pa.Schema, receipts: Accumulator[Receipts]) -> ArrowFunction:
    """For `mapInArrow`: a row is the work of a task, what leaves are the rows of its lanes."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column(0).to_pylist():
                began_s = time.time()
                work = TaskWork.from_json(text)
                rows, done = read_lanes(*load_program(program), work)
                try:
                    for piece in rows:
                        yield piece.cast(columns)
                    receipt = done()
                except ElastreamError as error:
                    receipt = Receipt.failed(error)
                lanes = " ".join(str(lane.lane) for lane in work.lanes)
                receipts.add({f"read {lanes}": (receipt.to_json(), began_s)})

    return read


def router(operator: str, program: bytes, columns: pa.Schema, receipts: Accumulator[Receipts]) -> ArrowFunction:
    """For `mapInArrow`: what Spark made enters, one receipt a task leaves."""

    def route(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        routing, sender = context.getLocalProperty(ROUTING), context.partitionId()
        made = (batch.cast(columns) for batch in batches)
        if routing:
            receipt = route_results(*load_program(program), TaskWork.from_json(routing), operator, sender, made)
            for its in receipt.operators:
                # Spark's partitions are no replicas; what was taken from each of these the readers say.
                its.lane = 0
            yield pa.record_batch([pa.array([receipt.to_json()])], names=["receipt"])
        else:
            for _ in made:
                pass
        receipts.add({f"routed {sender}": ("", time.time())})

    return route
