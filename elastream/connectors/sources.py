"""Where tuples come from: a workload replayed in its own time, Kafka, files, or any streaming DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elastream.connectors.files.source import csv, json, parquet
from elastream.connectors.kafka.source import kafka
from elastream.connectors.spark_source import AnyFrame, SparkSource
from elastream.errors import TopologyError
from elastream.topology import parse_schema
from elastream.workload import Arrivals
from elastream.workload.replay import Make, Numbers, Replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Replay", "SparkSource", "csv", "dataframe", "json", "kafka", "parquet", "replay"]


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
) -> SparkSource:
    """Read a streaming DataFrame, given as it is or as a function of the session (then with its schema)."""
    if callable(frame):
        if schema is None:
            raise TopologyError("dataframe: a function of the session needs schema='...'; or pass the DataFrame itself")
        return AnyFrame(frame, schema=parse_schema(schema), due=due)
    from pyspark.sql.pandas.types import to_arrow_schema

    if not frame.isStreaming:
        raise TopologyError(
            "dataframe: expected a streaming DataFrame, got a static one; read it with spark.readStream"
        )
    found = to_arrow_schema(frame.schema, timezone="UTC")
    plain = pa.schema([pa.field(field.name, field.type) for field in found])
    return AnyFrame(lambda spark: frame, schema=parse_schema(plain if schema is None else schema), due=due)


def _numbers(numbers: Numbers) -> dict[str, Any]:
    return {"id": numbers}
