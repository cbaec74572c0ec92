"""`SparkSource`: the base class of sources that Spark reads as streaming DataFrames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elastream.engine.spark.jars import Jars
from elastream.engine.worker.intake import DAMAGED, EXTRA, NAME, PART
from elastream.topology import parse_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DAMAGED", "EXTRA", "NAME", "PART", "AnyFrame", "Progress", "SparkSource", "State"]

State = dict[str, Any]
"""The part of a source's state that the ledger keeps: values that MessagePack can hold."""

Progress = dict[str, Any]
"""Spark's report on a source after a batch: `startOffset`, `endOffset`, `latestOffset` and more."""


@dataclass(frozen=True)
class SparkSource(ABC):
    """A source of your own that Spark reads: subclass it as a frozen dataclass, with `frame`.

        @dataclass(frozen=True)
        class Rate(SparkSource):
            per_second: int

            def frame(self, spark, state):
                return spark.readStream.format("rate").option("rowsPerSecond", self.per_second).load()

        app.source("ticks", Rate(100, schema="timestamp timestamp, value long", due="timestamp"))

    Its offsets are in Spark's checkpoint, inside the base. A frame may have a column `_damaged`, with the text of a row that
    could not be read, else null: such rows go to the dead letters.
    """

    schema: pa.Schema = field(kw_only=True)
    """The columns that enter, as a `pyarrow.Schema` or as text."""

    due: str | None = field(default=None, kw_only=True)
    """The column with the time at which a tuple was due; without one it is the time at which it was read."""

    jars: Jars | None = field(default=None, kw_only=True)
    """Jars that Spark needs for it; None: none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", parse_schema(self.schema))

    def begin(self, spark: SparkSession, source: str, known: State) -> State:
        """Called when a run starts. `known` is the state that the ledger kept so far; the result is kept from now on."""
        return known

    @abstractmethod
    def frame(self, spark: SparkSession, state: State) -> DataFrame:
        """The streaming DataFrame with the columns of `schema`. `state` is the result of `begin`."""

    def lag(self, state: State, progress: Progress) -> dict[str, int]:
        """Tuples that are available and not read yet, per part of the source; empty when that cannot be known."""
        return {}

    def is_over(self, state: State, progress: Progress) -> bool:
        """True when no more tuples will come: the stream can then end."""
        return False

    def redact(self, text: str) -> str:
        """The text of an error without secrets."""
        return text


@dataclass(frozen=True)
class AnyFrame(SparkSource):
    """A streaming DataFrame of the user's own."""

    open: Callable[[SparkSession], DataFrame]

    def frame(self, spark: SparkSession, state: State) -> DataFrame:
        return self.open(spark)
