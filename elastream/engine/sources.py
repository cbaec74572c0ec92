"""Where tuples come from: a workload replayed in its own time, Kafka, files, or any streaming DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastream.engine.file_source import csv, json, parquet
from elastream.engine.kafka_source import kafka
from elastream.engine.streams import AnyFrame, Stream
from elastream.errors import TopologyError
from elastream.topology import parse_schema
from elastream.workload import Arrivals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Replay", "Stream", "csv", "dataframe", "json", "kafka", "parquet", "replay"]

Numbers = npt.NDArray[np.int64]
Make = Callable[[Numbers], "dict[str, Any] | pa.RecordBatch"]


@dataclass(frozen=True)
class Replay:
    """Tuples that are due at given times, made from their numbers: the same number gives the same tuple."""

    arrivals: Arrivals
    schema: pa.Schema
    make: Make

    def rows(self, first: int, stop: int) -> pa.RecordBatch:
        made = self.make(np.arange(first, stop, dtype=np.int64))
        if isinstance(made, pa.RecordBatch):
            return made.cast(self.schema)
        return pa.RecordBatch.from_pydict({name: made[name] for name in self.schema.names}, schema=self.schema)


def replay(arrivals: Arrivals, schema: str | pa.Schema = "id long", make: Make | None = None) -> Replay:
    """Replay a workload: `make(numbers)` gives the columns of those tuples; by default `id` is the number."""
    columns = parse_schema(schema)
    if make is None:
        if columns.names != ["id"]:
            raise TopologyError(f"replay: columns {columns.names} need make=function(numbers) -> dict of columns")
        make = _numbers
    return Replay(arrivals, columns, make)


def dataframe(
    frame: DataFrame | Callable[[SparkSession], DataFrame],
    schema: str | pa.Schema | None = None,
    due: str | None = None,
) -> Stream:
    """Read a streaming DataFrame, given as it is or as a function of the session (then with its schema)."""
    if callable(frame):
        if schema is None:
            raise TopologyError("dataframe: a function of the session needs schema='...'; or pass the DataFrame itself")
        return AnyFrame(parse_schema(schema), due, frame)
    from pyspark.sql.pandas.types import to_arrow_schema

    if not frame.isStreaming:
        raise TopologyError(
            "dataframe: expected a streaming DataFrame, got a static one; read it with spark.readStream"
        )
    found = to_arrow_schema(frame.schema, timezone="UTC")
    plain = pa.schema([pa.field(field.name, field.type) for field in found])
    return AnyFrame(parse_schema(plain if schema is None else schema), due, lambda spark: frame)


def _numbers(numbers: Numbers) -> dict[str, Any]:
    return {"id": numbers}
