"""`SparkSink`: the base class of sinks that Spark writes, one job for the rows of each delivery."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from elastream.engine.spark.jars import Jars
from elastream.topology import DUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK, SEQUENCE = "_task", "_sequence"
"""Two columns that every row has on its way out. Together they name the row, and the name is the same when a batch is repeated.

The task is `run/tick/sink-replica`; within it rows are numbered from 0.
"""

OWN = (DUE, TASK, SEQUENCE)
"""The columns of a frame that are ours and not the user's."""


@dataclass(frozen=True)
class SinkBatch:
    """The rows of a sink that are written together."""

    id: str
    """The same when the batch is repeated after a crash, with the same rows."""

    task: str
    """How the names of its tasks begin: see `TASK`."""

    sink: str
    """The name of the sink."""

    tick: int
    """The tick that assigned the rows."""

    may_be_repeated: bool
    """True for the first batch after a start: an earlier attempt may have written some or all of it."""


WriteFrame = Callable[["DataFrame", SinkBatch], None]
"""Writes one batch. When it returns, the rows are written."""


@dataclass(frozen=True)
class SparkSink(ABC):
    """A sink of your own that Spark writes: subclass it as a frozen dataclass, with `writer_for`.

        @dataclass(frozen=True)
        class Table(SparkSink):
            name: str

            def writer_for(self, spark, sink, schema):
                def write(frame, batch):
                    rows = frame.drop("_due")                # leaves `_task` and `_sequence`, which name a row
                    if batch.may_be_repeated:                # leave out what an earlier attempt has written
                        written = spark.table(self.name).where(f"_task like '{batch.task}%'")
                        rows = rows.join(written.select("_task", "_sequence"), ["_task", "_sequence"], "left_anti")
                    rows.writeTo(self.name).append()
                return write

        pages.sink("store", Table("pages", every_s=1.0), replicas=(1, 4))

    A frame has the sink's columns and three more: `_due`, `_task` and `_sequence`.
    """

    jars: Jars | None = field(default=None, kw_only=True)
    """Jars that Spark needs for it; None: none."""

    every_s: float = field(default=0.0, kw_only=True)
    """Rows are collected for this many seconds before they are written; 0: in every tick."""

    def check(self, sink: str, schema: pa.Schema) -> None:  # noqa: B027 - a sink may write any columns
        """Raise a `TopologyError` if these columns cannot be written. Called before Spark is started."""

    def local_folder(self, spark: SparkSession) -> Path | None:
        """A directory on this machine that is written: on a cluster all machines must share it."""
        return None

    @abstractmethod
    def writer_for(self, spark: SparkSession, sink: str, schema: pa.Schema) -> WriteFrame:
        """The function that writes a batch. Called once, when a run starts."""

    def redact(self, text: str) -> str:
        """The text of an error without secrets."""
        return text
