"""Where tuples come from: a workload replayed in its own time, or any streaming DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastream.errors import TopologyError
from elastream.topology import parse_schema
from elastream.workload import Arrivals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


@dataclass(frozen=True)
class Stream:
    """A streaming DataFrame, read as one more branch of the query. Its offsets are in Spark's checkpoint."""

    schema: pa.Schema
    open: Callable[[SparkSession], DataFrame]
    due: str | None
    """The column that holds the time a tuple was due; without one it is the time it was read."""


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
        return Stream(parse_schema(schema), frame, due)
    from pyspark.sql.pandas.types import to_arrow_schema

    if not frame.isStreaming:
        raise TopologyError(
            "dataframe: expected a streaming DataFrame, got a static one; read it with spark.readStream"
        )
    found = to_arrow_schema(frame.schema, timezone="UTC")
    plain = pa.schema([pa.field(field.name, field.type) for field in found])
    return Stream(parse_schema(plain if schema is None else schema), lambda spark: frame, due)


def _numbers(numbers: Numbers) -> dict[str, Any]:
    return {"id": numbers}
