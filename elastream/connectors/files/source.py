"""Directories as sources: Spark's reader of JSON, CSV or Parquet files follows one, a few new files in every tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from elastream.connectors.spark_source import DAMAGED, SparkSource, State
from elastream.engine.spark.redaction import redacted
from elastream.errors import TopologyError
from elastream.topology import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Options = Mapping[str, str]


@dataclass(frozen=True)
class Files(SparkSource):
    """One directory, and the files that come into it."""

    format: str
    path: str
    files_per_tick: int
    options: Options = field(repr=False)

    def frame(self, spark: SparkSession, state: State) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        columns = from_arrow_schema(self.schema)
        if self.format != "parquet":
            columns = columns.add(DAMAGED, "string")
        options = {"maxFilesPerTrigger": str(self.files_per_tick), "columnNameOfCorruptRecord": DAMAGED}
        return (
            spark.readStream.format(self.format).schema(columns).options(**options | dict(self.options)).load(self.path)
        )

    def redact(self, text: str) -> str:
        return redacted(text, self.options)


def json(
    path: str,
    schema: str | pa.Schema,
    *,
    due: str | None = None,
    files_per_tick: int = 10,
    options: Options | None = None,
) -> Files:
    """Follow a directory of files with a JSON object a line. A line that is none goes to the dead letters."""
    return _files("json", path, schema, due, files_per_tick, options)


def csv(
    path: str,
    schema: str | pa.Schema,
    *,
    due: str | None = None,
    files_per_tick: int = 10,
    options: Options | None = None,
) -> Files:
    """Follow a directory of CSV files, each with a head line. A line that does not fit goes to the dead letters."""
    return _files("csv", path, schema, due, files_per_tick, {"header": "true", **(options or {})})


def parquet(
    path: str,
    schema: str | pa.Schema,
    *,
    due: str | None = None,
    files_per_tick: int = 10,
    options: Options | None = None,
) -> Files:
    """Follow a directory of Parquet files."""
    return _files("parquet", path, schema, due, files_per_tick, options)


def _files(
    kind: str, path: str, schema: str | pa.Schema, due: str | None, files_per_tick: int, options: Options | None
) -> Files:
    columns = parse_schema(schema)
    if due is not None and due not in columns.names:
        raise TopologyError(
            f"{kind}: due names {due!r}, but the columns are {', '.join(columns.names)}; name one of these"
        )
    if files_per_tick < 1:
        raise TopologyError(f"{kind}: files_per_tick must be 1 or more, got {files_per_tick}")
    return Files(kind, path, files_per_tick, dict(options or {}), schema=columns, due=due)
