"""What the engine asks of a streaming DataFrame that is a source: its frame, how far it is behind, whether it is over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elastream.engine.worker.intake import DAMAGED, EXTRA, NAME, PART

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DAMAGED", "EXTRA", "NAME", "PART", "AnyFrame", "Progress", "State", "Stream"]

State = dict[str, Any]
"""What the ledger keeps of a source."""

Progress = dict[str, Any]
"""What Spark says of a source after a batch: `startOffset`, `endOffset`, `latestOffset` and more."""


@dataclass(frozen=True)
class Stream(ABC):
    """Read as one more branch of the query. Its offsets are in Spark's checkpoint."""

    schema: pa.Schema
    due: str | None
    """The column that holds the time a tuple was due; without one it is the time it was read."""

    def begin(self, spark: SparkSession, source: str, known: State) -> State:
        """Called when a run starts: what the ledger shall keep of the source; `known` is what it kept so far."""
        return known

    @abstractmethod
    def frame(self, spark: SparkSession, state: State) -> DataFrame:
        """The streaming DataFrame of its rows."""

    def lag(self, state: State, progress: Progress) -> dict[str, int]:
        """Tuples that are there and not read yet, for each part of the source; nothing when that cannot be known."""
        return {}

    def is_over(self, state: State, progress: Progress) -> bool:
        """True when nothing will come any more."""
        return False

    def redact(self, text: str) -> str:
        """What may be shown of an error."""
        return text


@dataclass(frozen=True)
class AnyFrame(Stream):
    """A streaming DataFrame of the user's own."""

    open: Callable[[SparkSession], DataFrame]

    def frame(self, spark: SparkSession, state: State) -> DataFrame:
        return self.open(spark)
