"""Spark's floor: what a micro-batch costs with nothing in it. No tick can be shorter."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from elastream.engine import session
from elastream.errors import RunFailed
from elastream_lab.bench.common.plain import default_session

PYTHON_SOURCE = "elastream-bench-one-string"


@dataclass(frozen=True)
class Floor:
    """Times of an empty micro-batch."""

    kind: str
    """`strict`: ticks' settings, Spark's own source; `python`: the same with a Python source; `default`: Spark as it comes."""
    p50_ms: float
    p95_ms: float
    """Both of `durationMs.triggerExecution`."""
    between_p50_ms: float
    """From the end of one micro-batch to the end of the next, as ticks are measured."""
    batches: int


def measure_floor(kind: str, master: str, warm_up: int, count: int) -> Floor:
    """Run an empty query back to back; the first `warm_up` batches do not count."""
    spark = default_session(master) if kind == "default" else session(master)
    ended_s: list[float] = []

    def execute(batch: DataFrame, number: int) -> None:
        batch.collect()
        ended_s.append(time.perf_counter())

    with TemporaryDirectory(prefix="elastream-bench-") as folder:
        query = (
            _empty(spark, kind)
            .writeStream.foreachBatch(execute)
            .option("checkpointLocation", f"file://{folder}/checkpoint")
            .trigger(processingTime="0 seconds")
            .start()
        )
        took_ms: dict[int, int] = {}
        # Spark remembers the last 100 batches; asking rarely keeps the asking out of the figure.
        while len(ended_s) <= warm_up + count:
            if not query.isActive:
                raise RunFailed(f"bench: the empty query ended: {str(query.exception())[:500]}")
            time.sleep(1.0)
            took_ms |= {progress.batchId: progress.durationMs["triggerExecution"] for progress in query.recentProgress}
        query.stop()
    measured = [ms for batch, ms in sorted(took_ms.items()) if batch >= warm_up]
    between = np.diff(ended_s[warm_up:]) * 1e3
    return Floor(
        kind,
        float(np.percentile(measured, 50)),
        float(np.percentile(measured, 95)),
        float(np.percentile(between, 50)),
        len(measured),
    )


def _empty(spark: SparkSession, kind: str) -> DataFrame:
    if kind == "python":
        spark.dataSource.register(OneString)
        return spark.readStream.format(PYTHON_SOURCE).load()
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1).load()


class OneStringReader(DataSourceStreamReader):
    """One task a micro-batch, and one short string from it."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"batch": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"batch": start["batch"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(end["batch"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array(["empty"])], names=["text"])

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to forget."""


class OneString(DataSource):
    @classmethod
    def name(cls) -> str:
        return PYTHON_SOURCE

    def schema(self) -> str:
        return "text string"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return OneStringReader()
