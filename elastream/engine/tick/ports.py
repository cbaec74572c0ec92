"""The ports of the tick: what it needs of the edges and of whoever measures, and what it gives them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from elastream.engine.messages import Receipt
from elastream.engine.tick.merge import TickResult
from elastream.engine.tick.works import NextWorks
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import Entry


@dataclass(frozen=True)
class EdgeBatch:
    """A batch of the edge query, or a job of a sink of Spark's: its receipts are committed together."""

    receipts: list[Receipt]
    entry: Callable[[Entry, TickResult], Entry] = lambda entry, result: entry
    """Adds what the edge wants to have in the entry."""
    committed: Callable[[], object] = lambda: None
    """Called when it is."""


class Edges(Protocol):
    """What Spark serves by itself, as the tick sees it. Called in the tick's thread."""

    def plan(self, planned: NextWorks, now: float, wall_s: float) -> None:
        """Add the tuples that Spark shall be given next; they are in the ledger before `begin` is called."""
        ...

    def begin(self) -> None:
        """The entry with what was planned is committed."""
        ...

    def take(self) -> list[EdgeBatch]:
        """What has been done since."""
        ...

    def is_drained(self) -> bool: ...

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

    def counts(self, operator: str) -> OperatorCounts:
        """One operator's part of it; zeros when it did nothing."""
        return self.result.counts.get(operator) or OperatorCounts()


class Observer(Protocol):
    """Whoever measures."""

    def add(self, tick: Tick) -> None: ...

    def step(self, now: float) -> None:
        """Called in every turn, after its commit."""
        ...
