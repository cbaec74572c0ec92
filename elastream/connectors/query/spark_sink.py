"""What the engine asks of a sink that Spark writes: checks at the start, then one job for the rows of every tick."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from elastream.engine.spark.jars import Jars
from elastream.topology import DUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK, SEQUENCE = "_task", "_sequence"
"""Two columns that every row has on its way out: together they name it, and name it the same when a tick is repeated.

The task is `run/tick/sink-replica`; within it rows are numbered from 0.
"""

OWN = (DUE, TASK, SEQUENCE)
"""The columns that are ours and not the user's."""


@dataclass(frozen=True)
class Write:
    """One tick's rows of a sink."""

    id: str
    """The same when a tick is repeated after a crash, with the same rows."""
    task: str
    """How the names of its tasks begin: see `TASK`."""
    sink: str
    tick: int
    may_be_repeated: bool
    """True after a start: an earlier try of this tick may have written some or all of it."""


WriteFrame = Callable[["DataFrame", Write], None]


@dataclass(frozen=True)
class Writer(ABC):
    """How the rows of a sink are written. Frames have the sink's columns and `OWN`."""

    jars: Jars | None
    every_s: float
    """Rows are collected for this long before they are written; 0: in every tick."""

    def check(self, sink: str, schema: pa.Schema) -> None:  # noqa: B027 - one may write any columns
        """Called before Spark is started: raises when it cannot write these columns."""

    def local_folder(self, spark: SparkSession) -> Path | None:
        """A directory on this machine's disk that it writes: on a cluster all machines must have it in common."""
        return None

    @abstractmethod
    def writer_for(self, spark: SparkSession, sink: str, schema: pa.Schema) -> WriteFrame:
        """Called when a run starts; gives what is called in every tick that has rows. When that returns, they are written."""

    def redact(self, text: str) -> str:
        """What may be shown of an error."""
        return text
