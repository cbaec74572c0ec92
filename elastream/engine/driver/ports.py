"""Ports of the driver: what it needs of Spark's part of a graph, and the summary of a tick for whoever measures."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from elastream.engine.driver.commit.merge import TickResult
from elastream.engine.driver.dispatch.works import Dispatch
from elastream.engine.messages import Receipt
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import Reread


@dataclass(frozen=True)
class QueryBatch:
    """A batch of the Structured Streaming query."""

    query: str
    number: int
    offer_read: bool
    """True if it has read all of the offer to dataframe operators."""


@dataclass(frozen=True)
class SinkJob:
    """A job that wrote to a sink of Spark's."""

    sink: str


@dataclass(frozen=True)
class SourcesEnded:
    """Some streaming sources are over."""


@dataclass(frozen=True)
class EdgeBatch:
    """Work that Spark has done: its receipts are committed together."""

    receipts: list[Receipt]
    origin: QueryBatch | SinkJob | SourcesEnded


@dataclass(frozen=True)
class SparkPart:
    """The part of a batch in an entry, besides its receipts."""

    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Positions of streaming sources."""
    query: str | None = None
    batch: int = -1
    reread: list[Reread] | None = None


class Edges(Protocol):
    """Spark's part of a graph, as the driver sees it. Called in the driver's thread."""

    def plan(self, dispatch: Dispatch, now: float, wall_s: float) -> None:
        """Add the tuples that Spark is given next; they are in the ledger before `begin` is called."""
        ...

    def begin(self) -> None:
        """The entry with what was planned is committed."""
        ...

    def take(self) -> list[EdgeBatch]:
        """Batches that were done since."""
        ...

    def part_of(self, batch: EdgeBatch) -> SparkPart:
        """The part of a batch in the entry that commits it."""
        ...

    def committed(self, batch: EdgeBatch, now: float) -> None:
        """The entry with a batch is written."""
        ...

    def is_drained(self) -> bool:
        """True if all sources are over and Spark has nothing left to serve."""
        ...

    def is_idle(self) -> bool:
        """True if Spark has nothing left of what it was given, whether sources have more or not."""
        ...

    def has_unread(self, source: str, part: str | None, wall_s: float) -> bool:
        """True if rows of a source, or of one part of it, are there or may be."""
        ...

    def spare_from(self) -> int:
        """The entry that was newest when the oldest task that may still write began."""
        ...


@dataclass(frozen=True)
class Tick:
    """One committed turn."""

    number: int
    """Of the entry."""
    started_s: float
    ended_s: float
    """Wall time, of the turn before and of this one."""
    result: TickResult
    replicas: dict[str, int]
    queued: dict[str, int]
    """Per operator, what waits in its lanes."""
    waiting: dict[str, int] = field(default_factory=dict)
    """Of these, the tuples that wait for a busy replica."""
    resized: dict[str, str] = field(default_factory=dict)
    """Operators whose replicas this turn changed, each with the reason."""

    def counts(self, operator: str) -> OperatorCounts:
        """One operator's part of it; zeros when it did nothing."""
        return self.result.counts.get(operator) or OperatorCounts()
