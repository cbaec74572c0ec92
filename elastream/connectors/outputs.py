"""Outputs read back as streaming DataFrames, which any of Spark's sinks can follow."""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from elastream.engine.worker.base_id import known_id
from elastream.errors import SettingError
from elastream.lanes import Slice, Store
from elastream.lanes.readers import OutputReader, acknowledge, check_reader, register_reader
from elastream.lanes.segment_files import SegmentReader
from elastream.lanes.segments import decode_schema


def stream_output(spark: SparkSession, base: str, output: str, schema: pa.Schema, reader: str = "default") -> DataFrame:
    """Follow an output while it grows. What every reader has committed is removed; each has a name of its own."""
    check_reader(reader)
    spark.dataSource.register(OutputSource)
    columns = from_arrow_schema(schema)
    return (
        spark.readStream.format(OutputSource.name())
        .schema(columns)
        .options(base=base, output=output, reader=reader)
        .load()
    )


MOST_PARTITIONS = 32
"""Tasks of one micro-batch: a long backlog has many slices, each of a few tuples."""


@lru_cache(maxsize=8)
def _reader(base: str) -> OutputReader:
    """One for as long as Spark's planner process lives, which asks many times a second."""
    return OutputReader(Store(base))


class OutputSource(DataSource):
    """Offsets are numbers of tuples since the base began."""

    @classmethod
    def name(cls) -> str:
        return "elastream-output"

    def schema(self) -> str:
        raise SettingError("elastream-output: give its schema; use stream_output(...)")

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return OutputStreamReader(
            self.options["base"], self.options["output"], self.options["reader"], schema.fieldNames()
        )


class OutputStreamReader(DataSourceStreamReader):
    """Partitions are some slices each; a slice that was read in part is cut."""

    def __init__(self, base: str, output: str, reader: str, columns: list[str]) -> None:
        self._base = base
        self._output = output
        self._reader = reader
        self._columns = columns

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        store, found = Store(self._base), _reader(self._base).backlog(self._output)
        # From now on nothing goes that this reader has not read, though it has committed nothing yet.
        register_reader(store, self._output, self._reader, found.first)
        return {"tuple": found.first, "base": known_id(store)}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802 - Spark's name
        found, here = _reader(self._base).backlog(self._output), known_id(Store(self._base))
        if start.get("base", here) != here or start["tuple"] > found.stop:
            raise SettingError(
                f"output {self._output!r}: base {Store(self._base)} was begun anew since reader {self._reader!r} read from it; begin its "
                "query anew too, with a new checkpoint"
            )
        return {"tuple": found.stop, "base": here}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        found = _reader(self._base).backlog(self._output)
        at = found.first
        if start["tuple"] < at:
            raise SettingError(
                f"output {self._output!r}: tuples {start['tuple']}..{at} were removed; another reader of the name "
                f"{self._reader!r} has read them: give each reader its own name"
            )
        pieces = []
        for piece in found.slices:
            low, high = max(at, start["tuple"]), min(at + piece.rows, end["tuple"])
            if low < high:
                pieces.append(
                    (piece._replace(first=piece.first + low - at, rows=high - low), found.schemas[piece.schema])
                )
            at += piece.rows
        each = math.ceil(len(pieces) / MOST_PARTITIONS) or 1
        together = [pieces[first : first + each] for first in range(0, len(pieces), each)]
        return [InputPartition(msgspec.json.encode(some).decode()) for some in together] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is not None:
            reader = SegmentReader(Store(self._base))
            for piece, schema in msgspec.json.decode(partition.value, type=list[tuple[Slice, str]]):
                yield reader.read(piece, decode_schema(schema)).select(self._columns)
            reader.close()

    def commit(self, end: dict[str, Any]) -> None:
        acknowledge(Store(self._base), self._output, self._reader, end["tuple"])
