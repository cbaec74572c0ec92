"""A task of a job that writes, in a Python worker: a lane is read, its rows are named, and go on to Spark's writer."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam

from elastream.connectors.query.task import read_work, take_lane
from elastream.engine import messages

TaskReceipts = dict[str, tuple[bytes, float]]
"""By task, what it says, and when it began."""


class ByTask(AccumulatorParam[TaskReceipts]):
    """Tasks put their receipts in; one that is tried again replaces its own."""

    def zero(self, value: TaskReceipts) -> TaskReceipts:
        return {}

    def addInPlace(self, value1: TaskReceipts, value2: TaskReceipts) -> TaskReceipts:  # noqa: N802 - Spark's name
        return {**value1, **value2}


def lane_reader(
    program: bytes, works: list[str], task: str, columns: pa.Schema, receipts: Accumulator[TaskReceipts]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow`: a row is the number of a lane's work, what leaves are the lane's rows."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                began_s = time.time()
                edge = read_work(works[number])
                rows: list[pa.RecordBatch] = []
                done = take_lane(program, edge, lambda piece, _: rows.append(piece))  # noqa: B023
                name = f"{task}{edge.work.lanes[0].lane}"
                first = 0
                for piece in rows:
                    yield _named(piece, name, first, columns)
                    first += piece.num_rows
                receipts.add({name: (messages.encode(done()), began_s)})

    return read


def _named(batch: pa.RecordBatch, task: str, first: int, columns: pa.Schema) -> pa.RecordBatch:
    own = [pa.repeat(task, batch.num_rows), pa.array(np.arange(first, first + batch.num_rows))]
    return pa.RecordBatch.from_arrays([*batch.columns, *own], names=columns.names).cast(columns)
