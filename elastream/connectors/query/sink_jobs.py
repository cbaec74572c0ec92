"""The jobs by which Spark writes sinks: what waits in a sink's lanes is given to one job after another.

What a job writes is in the ledger before it begins: when it is repeated after a crash, it writes the same rows under the same
names. A job's tasks read a lane each, in Python, and hand the rows to Spark's writer in the same task. One sink waits for no
other, and none for the edge query.
"""

import math
import time
import zlib
from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from elastream.connectors.query.lane_reader import ByTask, lane_reader
from elastream.connectors.query.task import EdgeWork, to_text
from elastream.connectors.spark_sink import SEQUENCE, TASK, SinkBatch, WriteFrame
from elastream.engine import messages
from elastream.engine.messages import Receipt
from elastream.engine.spark.java_errors import java_reason
from elastream.engine.threads import DaemonPool
from elastream.engine.worker.program import Program
from elastream.errors import ElastreamError, RunFailed
from elastream.topology import Operator, stored

LEAST_SHARE = 0.125
"""The rows of a job count for this share of its time at least: the quickest job has written rows too."""

Done = Callable[[str, "list[Receipt] | ElastreamError"], object]


class SinkJobs:
    """The sinks of one run that Spark writes. They are opened when it is made."""

    def __init__(self, spark: SparkSession, program: Program, done: Done) -> None:
        """`done` is called in a job's thread: the receipts of a sink, or why there are none."""
        self._done = done
        self._sinks: dict[str, _Sink] = {
            sink.name: _Sink(spark, sink, program) for sink in program.graph.operators if sink.writer is not None
        }
        self._pool = DaemonPool(max(1, len(self._sinks)), "elastream-writes")

    def write(self, sink: str, entry: int, works: list[EdgeWork]) -> None:
        """Begin a job; `entry` names it, and is the same when it is repeated."""
        self._pool.submit(lambda: self._write(sink, entry, works))

    def _write(self, sink: str, entry: int, works: list[EdgeWork]) -> None:
        try:
            self._done(sink, self._sinks[sink].write(entry, works))
        except ElastreamError as error:
            self._done(sink, error)
        except Exception as error:
            self._done(sink, RunFailed(f"sink {sink!r}: {java_reason(error)}"))

    def close(self) -> None:
        self._pool.close()


class _Sink:
    def __init__(self, spark: SparkSession, sink: Operator, program: Program) -> None:
        assert sink.writer is not None, f"sink {sink.name!r} is not written by Spark"
        self._spark = spark
        self._sink = sink
        self._redact = sink.writer.redact
        self._columns = stored(sink.schema).append(pa.field(TASK, pa.string())).append(pa.field(SEQUENCE, pa.int64()))
        self._schema = from_arrow_schema(self._columns)
        self._run = _run_name(program.base_id, sink.name)
        self._program = program.to_bytes()
        self._write: WriteFrame = sink.writer.writer_for(spark, sink.name, sink.schema)
        self._receipts = spark.sparkContext.accumulator({}, ByTask())
        self._quickest_s = math.inf
        self._first = True

    def write(self, entry: int, works: list[EdgeWork]) -> list[Receipt]:
        tasks = [to_text(work) for work in works]
        task = f"{self._run}/{entry}/{self._sink.name}-"
        read = lane_reader(self._program, tasks, task, self._columns, self._receipts)
        self._receipts.value = {}
        frame = self._spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, self._schema)
        write = SinkBatch(f"{self._run}-{entry}-{self._sink.name}", task, self._sink.name, entry, self._first)
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
                f"sink {self._sink.name!r}: Spark could not write delivery {entry}: "
                f"{self._redact(java_reason(error))}; nothing of it was applied: mend that, then start again "
                "with the same base"
            ) from None
        ended_s = time.time()
        self._first = False
        said_by, self._receipts.value = dict(self._receipts.value), {}
        assert len(said_by) == len(works), f"{len(said_by)} receipts of {len(works)} tasks"
        return [
            self._timed(messages.decode_receipt(data), ended_s - max(began_s, start_s))
            for data, start_s in said_by.values()
        ]

    def _timed(self, receipt: Receipt, took_s: float) -> Receipt:
        """Python knows how long it took to read a lane; how long it took to write is known when the job is over.

        A job takes its time for few rows too: only what it takes beyond the quickest one is counted for the rows.
        """
        took_s = max(0.0, took_s)
        self._quickest_s = min(self._quickest_s, took_s)
        for lane in receipt.operators:
            lane.busy_s = max(took_s - self._quickest_s, took_s * LEAST_SHARE)
        return receipt


def _run_name(base_id: str, sink: str) -> str:
    """Names the deliveries of one sink: two sinks of a run write at their own pace, perhaps to one topic."""
    name = f"{base_id}.{sink}"
    return name if len(name) <= 64 else f"{base_id}.{zlib.crc32(sink.encode()):08x}"
