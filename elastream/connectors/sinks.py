"""Where tuples go by Spark's own writers: Kafka, files, tables, or anything that a batch DataFrame can be written to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from elastream.connectors.files.sink import csv, json, parquet
from elastream.connectors.jdbc.sink import jdbc
from elastream.connectors.kafka.sink import kafka
from elastream.connectors.query.spark_sink import OWN, Write, WriteFrame, Writer
from elastream.errors import TopologyError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Write", "csv", "dataframe", "jdbc", "json", "kafka", "parquet"]


@dataclass(frozen=True)
class AnyWriter(Writer):
    """A function of the user's own."""

    function: WriteFrame

    def writer_for(self, spark: SparkSession, sink: str, schema: pa.Schema) -> WriteFrame:
        def write(frame: DataFrame, write: Write) -> None:
            self.function(frame.drop(*OWN), write)

        return write


def dataframe(function: WriteFrame, *, every_s: float = 0.0) -> AnyWriter:
    """Call `function(frame, write)` with the rows of a tick as a DataFrame; `write.id` is the same when a tick is repeated."""
    if not callable(function):
        raise TopologyError(f"dataframe: expected function(frame, write), got {type(function).__name__}")
    return AnyWriter(None, every_s, function)
