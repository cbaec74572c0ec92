"""Directories as sinks: Spark writes JSON, CSV or Parquet, and what a tick wrote appears whole, once, or not at all.

A tick's files are written under `_writing`, which readers of directories pass over, and then moved to a directory of their
own, `delivery=ID`. A tick that is repeated finds it there and leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from elastream.connectors.spark_sink import OWN, SinkBatch, SparkSink, WriteFrame
from elastream.errors import RunFailed, TopologyError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Options = Mapping[str, str]

OBJECT_STORES = {"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cosn", "obs", "oci", "swift"}
"""Where renaming a directory may mean to copy its files: after a crash in the midst a repeated tick would not see what lacks."""


@dataclass(frozen=True)
class FileSink(SparkSink):
    """One directory."""

    format: str
    path: str
    options: Options = field(repr=False)

    def check(self, sink: str, schema: pa.Schema) -> None:
        if "delivery" in schema.names:
            raise TopologyError(f"sink {sink!r}: 'delivery' is the column that a directory adds; rename it")
        for column in schema:
            if self.format == "csv" and (pa.types.is_nested(column.type) or pa.types.is_binary(column.type)):
                raise TopologyError(
                    f"sink {sink!r}: CSV cannot hold column {column.name!r} of type {column.type}; drop it or write Parquet"
                )

    def local_folder(self, spark: SparkSession) -> Path | None:
        path: Any = spark._jvm.org.apache.hadoop.fs.Path(self.path)  # type: ignore[union-attr]
        files = path.getFileSystem(spark._jsc.hadoopConfiguration())
        return Path(files.makeQualified(path).toUri().getPath()) if files.getUri().getScheme() == "file" else None

    def writer_for(self, spark: SparkSession, sink: str, schema: pa.Schema) -> WriteFrame:
        jvm: Any = spark._jvm
        configuration = spark._jsc.hadoopConfiguration()
        default = jvm.org.apache.hadoop.fs.FileSystem.getDefaultUri(configuration)
        _refuse_object_store(f"sink {sink!r}", urlsplit(self.path).scheme or default.getScheme())

        def write(frame: DataFrame, write: SinkBatch) -> None:
            tried, final = (jvm.org.apache.hadoop.fs.Path(f"{self.path}/{name}") for name in _names(write))
            files = final.getFileSystem(configuration)
            if write.may_be_repeated and files.exists(final):
                return
            rows = frame.drop(*OWN)
            rows.write.format(self.format).options(**self.options).mode("overwrite").save(tried.toString())
            if not files.rename(tried, final):
                raise RunFailed(f"sink {sink!r}: {tried} could not be renamed to {final}; mend that and start again")

        return write


def _refuse_object_store(where: str, scheme: str) -> None:
    if scheme in OBJECT_STORES:
        raise TopologyError(
            f"{where}: is on an object store, {scheme}://, which cannot rename a directory at once; write to a mounted "
            "directory or hdfs://, or write a directory for each write.id with sinks.dataframe (docs/decisions/013-kafka.md)"
        )


def _names(write: SinkBatch) -> tuple[str, str]:
    return f"_writing/{write.id}", f"delivery={write.id}"


def json(path: str, *, every_s: float = 10.0, options: Options | None = None) -> FileSink:
    """Write a directory of files with a JSON object a line; rows are collected for `every_s` seconds."""
    return _files("json", path, every_s, options)


def csv(path: str, *, every_s: float = 10.0, options: Options | None = None) -> FileSink:
    """Write a directory of CSV files, each with a head line; rows are collected for `every_s` seconds."""
    return _files("csv", path, every_s, {"header": "true", **(options or {})})


def parquet(path: str, *, every_s: float = 10.0, options: Options | None = None) -> FileSink:
    """Write a directory of Parquet files; rows are collected for `every_s` seconds."""
    return _files("parquet", path, every_s, options)


def _files(kind: str, path: str, every_s: float, options: Options | None) -> FileSink:
    if every_s < 0:
        raise TopologyError(f"{kind}: every_s must be 0 or more, got {every_s}; 0 writes in every tick")
    if not isinstance(path, str):
        raise TopologyError(f"{kind}: expected the path of a directory as text, got {type(path).__name__}")
    _refuse_object_store(f"{kind} {path}", urlsplit(path).scheme)
    return FileSink(kind, path.rstrip("/"), dict(options or {}), every_s=every_s)
