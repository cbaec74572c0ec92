"""Outputs read back: as one Arrow table, or as a streaming DataFrame that any Spark sink can follow."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from elastream.errors import SettingError
from elastream.lanes import Slice, Store
from elastream.lanes.readers import Follower, acknowledge
from elastream.lanes.segments import decode_schema, read_slice


def read_output(base: str, output: str) -> pa.Table:
    """All tuples that wait in an output, in the order in which they were committed."""
    store = Store(base)
    found = Follower(store).waiting(output)
    batches = [read_slice(store, piece, decode_schema(found.schemas[piece.schema])) for piece in found.slices]
    return pa.Table.from_batches(batches) if batches else pa.table({})


def stream_output(spark: SparkSession, base: str, output: str, schema: pa.Schema, reader: str = "default") -> DataFrame:
    """Follow an output while it grows. What every reader has committed is removed; each has a name of its own."""
    spark.dataSource.register(OutputSource)
    columns = from_arrow_schema(schema)
    return (
        spark.readStream.format(OutputSource.name())
        .schema(columns)
        .options(base=base, output=output, reader=reader)
        .load()
    )


@lru_cache(maxsize=8)
def _follower(base: str) -> Follower:
    """One for as long as Spark's planner process lives, which asks many times a second."""
    return Follower(Store(base))


class OutputSource(DataSource):
    """Offsets are numbers of tuples since the base began."""

    @classmethod
    def name(cls) -> str:
        return "elastream-output"

    def schema(self) -> str:
        raise SettingError("elastream-output: give its schema; use stream_output(...)")

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return OutputReader(self.options["base"], self.options["output"], self.options["reader"], schema.fieldNames())


class OutputReader(DataSourceStreamReader):
    """Slices are the partitions; a slice that was read in part is cut."""

    def __init__(self, base: str, output: str, reader: str, columns: list[str]) -> None:
        self._base = base
        self._output = output
        self._reader = reader
        self._columns = columns

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"tuple": _follower(self._base).waiting(self._output).first}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"tuple": max(start["tuple"], _follower(self._base).waiting(self._output).stop)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        found = _follower(self._base).waiting(self._output)
        at = found.first
        if start["tuple"] < at:
            raise SettingError(
                f"output {self._output!r}: tuples {start['tuple']}..{at} were removed; another reader of the name "
                f"{self._reader!r} has read them: give each reader its own name"
            )
        partitions = []
        for piece in found.slices:
            low, high = max(at, start["tuple"]), min(at + piece.rows, end["tuple"])
            if low < high:
                part = piece._replace(first=piece.first + low - at, rows=high - low)
                partitions.append(InputPartition(json.dumps([part, found.schemas[piece.schema]])))
            at += piece.rows
        return partitions or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is not None:
            piece, schema = json.loads(partition.value)
            yield read_slice(Store(self._base), Slice(*piece), decode_schema(schema)).select(self._columns)

    def commit(self, end: dict[str, int]) -> None:
        acknowledge(Store(self._base), self._output, self._reader, end["tuple"])
