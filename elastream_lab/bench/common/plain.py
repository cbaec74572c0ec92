"""The other side of the comparison: plain Structured Streaming queries, without anything of Elastream's in them."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.errors import RunFailed
from elastream_lab.bench.common.work import arrow_nothing, arrow_spin, arrow_spin_four
from elastream_lab.bench.engine.throughput import Throughput

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

COLUMNS = "id long, due timestamp"

STEPS: dict[str, tuple[ArrowFunction, ...]] = {
    "empty": (arrow_nothing,) * 4,
    "20us": (arrow_spin,) * 4,
    "20us in one function": (arrow_spin_four,),
}


def default_session(master: str, extra: dict[str, str] | None = None) -> SparkSession:
    """Spark as it comes; only the noise on the console is turned down. `extra` is for jars."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("plain")
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in (quiet | (extra or {})).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@dataclass
class Batches:
    """When each micro-batch of a query ended."""

    ended_s: list[float] = field(default_factory=list)

    def wait(self, query: StreamingQuery, until: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not until():
            if not query.isActive or time.monotonic() > deadline:
                reason = query.exception() or f"{len(self.ended_s)} batches in {timeout_s:.0f} s"
                raise RunFailed(f"bench: the plain query did not get far enough: {str(reason)[:500]}")
            time.sleep(0.02)

    def wait_for(self, query: StreamingQuery, count: int, timeout_s: float) -> None:
        self.wait(query, lambda: len(self.ended_s) >= count, timeout_s)


def chain_query(
    spark: SparkSession, steps: tuple[ArrowFunction, ...], *, rows: int, partitions: int, checkpoint: str
) -> tuple[StreamingQuery, Batches]:
    """`rows` tuples a micro-batch from Spark's cheapest source, through one `mapInArrow` for each step."""
    frame = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", partitions)
        .load()
        .selectExpr("value as id", "timestamp as due")
    )
    for step in steps:
        frame = frame.mapInArrow(step, COLUMNS)
    batches = Batches()

    def execute(batch: DataFrame, number: int) -> None:
        batch.write.format("noop").mode("overwrite").save()
        batches.ended_s.append(time.perf_counter())

    query = (
        frame.writeStream.foreachBatch(execute)
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="0 seconds")
        .start()
    )
    return query, batches


def measure_plain(work: str, cores: int, sizes: list[int], warm_up_s: float, seconds: float) -> Throughput:
    """The same functions in one plain query, with a task for each core; the best of several sizes of micro-batch."""
    spark = default_session(f"local[{cores},4]")
    tried = []
    for rows in sizes:
        with TemporaryDirectory(prefix="elastream-bench-") as folder:
            query, batches = chain_query(
                spark, STEPS[work], rows=rows, partitions=cores, checkpoint=f"file://{folder}/checkpoint"
            )
            batches.wait_for(query, 2, 180)
            time.sleep(warm_up_s)
            tried.append((_per_second(query, batches, rows, seconds), rows))
            query.stop()
    best, rows = max(tried)
    config = f"{rows:,} tuples a micro-batch, {spark.sparkContext.master}"
    others = tuple((f"{size:,} tuples a micro-batch", rate) for rate, size in tried if size != rows)
    return Throughput("plain", work, config, best, seconds, 0, others)


def _per_second(query: StreamingQuery, batches: Batches, rows: int, seconds: float) -> float:
    """Whole micro-batches only, from the end of one to the end of another."""
    batches.wait_for(query, len(batches.ended_s) + 1, 120)
    first = len(batches.ended_s) - 1
    batches.wait(query, lambda: batches.ended_s[-1] - batches.ended_s[first] >= seconds, seconds * 5 + 120)
    ended_s = batches.ended_s[first:]
    return rows * (len(ended_s) - 1) / (ended_s[-1] - ended_s[0])
