"""Where tuples go by Spark's own writers: Kafka, files, tables, or anything that a batch DataFrame can be written to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from elastream.connectors.files.sink import csv, json, parquet
from elastream.connectors.jdbc.sink import jdbc
from elastream.connectors.kafka.sink import kafka
from elastream.connectors.spark_sink import OWN, SinkBatch, SparkSink, WriteFrame
from elastream.errors import TopologyError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SinkBatch", "SparkSink", "csv", "dataframe", "jdbc", "json", "kafka", "parquet"]


@dataclass(frozen=True)
class AnySink(SparkSink):
    """A function of the user's own."""

    function: WriteFrame

    def writer_for(self, spark: SparkSession, sink: str, schema: pa.Schema) -> WriteFrame:
        def write(frame: DataFrame, batch: SinkBatch) -> None:
            self.function(frame.drop(*OWN), batch)

        return write


def dataframe(function: WriteFrame, *, every_s: float = 0.0) -> AnySink:
    """Call `function(frame, batch)` with the rows of a batch as a DataFrame; `batch.id` is the same when it is repeated."""
    if not callable(function):
        raise TopologyError(f"dataframe: expected function(frame, batch), got {type(function).__name__}")
    return AnySink(function, every_s=every_s)
