"""Interfaces of a source and of a sink of Spark, as a topology sees them. Connectors implement both."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa


@runtime_checkable
class SourceSpec(Protocol):
    """A source: `sources.replay(...)`, `sources.kafka(...)`, or a subclass of `elastream.connectors.SparkSource`."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that enter."""


@runtime_checkable
class SinkSpec(Protocol):
    """A sink that Spark writes: `sinks.kafka(...)`, or a subclass of `elastream.connectors.SparkSink`."""

    @property
    def every_s(self) -> float:
        """Seconds for which rows are collected before they are written; 0: none."""

    def check(self, sink: str, schema: pa.Schema) -> None:
        """Raise if these columns cannot be written. Called before Spark is started."""

    def writer_for(self, spark: Any, sink: str, schema: pa.Schema) -> Any:
        """The function that writes the rows of one batch. Called once, when the run starts."""

    def local_folder(self, spark: Any) -> Path | None:
        """A directory on this machine that is written: on a cluster all machines must share it."""

    def redact(self, text: str) -> str:
        """The text of an error without secrets."""
