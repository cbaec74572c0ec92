"""The jobs by which Spark writes sinks, beside a tick's own: lanes enter, receipts leave when everything is written.

A job's tasks read a lane each, in Python, and hand the rows to Spark's writer in the same task. Nothing counts until the
driver commits the tick; a tick that is repeated writes the same rows under the same names.
"""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from elastream.engine.java_errors import java_reason
from elastream.engine.program import Program
from elastream.engine.work import Receipt, TaskWork
from elastream.engine.write_task import ByTask, lane_reader
from elastream.engine.writers import SEQUENCE, TASK, Write, WriteFrame
from elastream.errors import ElastreamError, RunFailed
from elastream.topology import Graph, Operator, stored

LEAST_SHARE = 0.125
"""The rows of a job count for this share of its time at least: the quickest job has written rows too."""


class Writing:
    """Of one run. The sinks are opened when it is made."""

    def __init__(self, spark: SparkSession, program: Program) -> None:
        self._sinks = {
            sink.name: _Sink(spark, sink, program) for sink in program.graph.operators if sink.writer is not None
        }
        self._pool = ThreadPoolExecutor(max_workers=max(1, len(self._sinks)), thread_name_prefix="elastream-writes")

    @contextmanager
    def beside(self, works: list[TaskWork]) -> Iterator[Callable[[], list[Receipt]]]:
        """Write while the block runs. What it is given waits for the end, and gives the receipts or raises."""
        jobs: list[Future[list[Receipt]]] = [
            self._pool.submit(self._sinks[name].write, list(its))
            for name, its in groupby(works, key=lambda work: work.lanes[0].operator)
        ]
        try:
            yield lambda: [receipt for job in jobs for receipt in job.result()]
        finally:
            for job in jobs:
                # A job that outlives its tick would still write when the tick is repeated.
                job.exception()

    def close(self) -> None:
        self._pool.shutdown(wait=False)


class _Sink:
    def __init__(self, spark: SparkSession, sink: Operator, program: Program) -> None:
        self._spark = spark
        self._sink = sink
        self._columns = stored(sink.schema).append(pa.field(TASK, pa.string())).append(pa.field(SEQUENCE, pa.int64()))
        self._schema = from_arrow_schema(self._columns)
        alone = replace(program, graph=Graph(program.graph.name, (sink,), ()))
        self._run = program.base_id
        self._program = alone.to_bytes()
        self._write: WriteFrame = sink.writer.writer_for(spark, sink.name, sink.schema)
        self._receipts = spark.sparkContext.accumulator({}, ByTask())
        self._quickest_s = math.inf
        self._first = True

    def write(self, works: list[TaskWork]) -> list[Receipt]:
        tick = works[0].tick
        tasks = [work.to_json() for work in works]
        task = f"{self._run}/{tick}/{self._sink.name}-"
        read = lane_reader(self._program, tasks, task, self._columns, self._receipts)
        frame = self._spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, self._schema)
        write = Write(f"{self._run}-{tick}-{self._sink.name}", task, self._sink.name, tick, self._first)
        began_s = time.time()
        try:
            self._write(frame, write)
            if len(self._receipts.value) < len(works):
                # Nothing had to be written, because it was there already; how much that is, is still to be said.
                frame.write.format("noop").mode("overwrite").save()
        except ElastreamError:
            raise
        except Exception as error:
            raise RunFailed(
                f"sink {self._sink.name!r}: Spark could not write tick {tick}: "
                f"{self._sink.writer.redact(java_reason(error))}; nothing of the tick was applied: mend that, then start again "
                "with the same base"
            ) from None
        ended_s = time.time()
        self._first = False
        said_by, self._receipts.value = dict(self._receipts.value), {}
        assert len(said_by) == len(works), f"{len(said_by)} receipts of {len(works)} tasks"
        return [
            self._timed(Receipt.from_json(text), ended_s - max(began_s, start_s)) for text, start_s in said_by.values()
        ]

    def _timed(self, receipt: Receipt, took_s: float) -> Receipt:
        """Python knows how long it took to read a lane; how long it took to write is known when the job is over.

        A job takes its time for few rows too: only what it takes beyond the quickest one is counted for the rows.
        """
        took_s = max(0.0, took_s)
        self._quickest_s = min(self._quickest_s, took_s)
        for its in receipt.operators:
            its.busy_s = max(took_s - self._quickest_s, took_s * LEAST_SHARE)
        return replace(receipt, served_s=took_s)
