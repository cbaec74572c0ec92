"""The book: everything the ledger says, in memory. Entries enter one after another; what waits can be asked."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from elastream.lanes.queues import LaneQueue
from elastream.lanes.segments import Appended, LaneId, SchemaId, Slice

Counts = dict[str, float]


@dataclass(frozen=True)
class Entry:
    """What one tick did, and the plan of the next. Committed in one write or not at all."""

    tick: int
    run: str
    """The query that the batch number belongs to: Spark gives one checkpoint one id."""
    batch: int
    at_s: float
    consumed: tuple[tuple[str, int, int], ...] = ()
    """(operator, lane, tuples)."""
    appended: tuple[Appended, ...] = ()
    schemas: dict[SchemaId, str] = field(default_factory=dict)
    """Schemas that slices of this entry name for the first time."""
    counts: dict[str, Counts] = field(default_factory=dict)
    """Per operator, what this tick adds to its totals."""
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Per source, how far it has been read."""
    plan: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "tick": self.tick,
            "run": self.run,
            "batch": self.batch,
            "at_s": self.at_s,
            "consumed": self.consumed,
            "appended": self.appended,
            "schemas": self.schemas,
            "counts": self.counts,
            "sources": self.sources,
            "plan": self.plan,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Entry":
        return cls(
            **{
                **document,
                "consumed": tuple((op, lane, rows) for op, lane, rows in document["consumed"]),
                "appended": tuple(Appended(op, lane, Slice(*piece)) for op, lane, piece in document["appended"]),
            }
        )


class Book:
    """The state after the last entry that was applied."""

    def __init__(self) -> None:
        self.tick = -1
        self.run = ""
        self.batch = -1
        self.at_s = 0.0
        self.lanes: dict[LaneId, LaneQueue] = {}
        self.schemas: dict[SchemaId, str] = {}
        self.totals: dict[str, Counts] = {}
        self.sources: dict[str, dict[str, Any]] = {}
        self.plan: dict[str, Any] = {}
        self._uses: Counter[str] = Counter()

    def queue(self, lane: LaneId) -> LaneQueue:
        return self.lanes.setdefault(lane, LaneQueue())

    def queued(self, operator: str) -> int:
        return sum(len(queue) for lane, queue in self.lanes.items() if lane.operator == operator)

    def segments(self) -> set[str]:
        """Those of which something waits."""
        return set(self._uses)

    def apply(self, entry: Entry) -> list[str]:
        """Follow one entry; gives the segments that nothing names any more."""
        if entry.tick != self.tick + 1:
            raise ValueError(f"entry {entry.tick} after {self.tick}")
        self.schemas.update(entry.schemas)
        for operator, lane, piece in entry.appended:
            self.queue(LaneId(operator, lane)).append(piece)
            self._uses[piece.segment] += 1
        freed = []
        for operator, lane, rows in entry.consumed:
            for piece in self.queue(LaneId(operator, lane)).consume(rows):
                self._uses[piece.segment] -= 1
                if not self._uses[piece.segment]:
                    del self._uses[piece.segment]
                    freed.append(piece.segment)
        for operator, counts in entry.counts.items():
            totals = self.totals.setdefault(operator, {})
            for name, value in counts.items():
                totals[name] = totals.get(name, 0) + value
        self.sources.update(entry.sources)
        self.tick, self.run, self.batch, self.at_s = entry.tick, entry.run, entry.batch, entry.at_s
        self.plan = entry.plan
        return freed

    def to_json(self) -> dict[str, Any]:
        return {
            "tick": self.tick,
            "run": self.run,
            "batch": self.batch,
            "at_s": self.at_s,
            "lanes": [(*lane, queue.consumed, list(queue.slices)) for lane, queue in self.lanes.items()],
            "schemas": self.schemas,
            "totals": self.totals,
            "sources": self.sources,
            "plan": self.plan,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Book":
        book = cls()
        for operator, lane, consumed, slices in document["lanes"]:
            pieces = deque(Slice(*piece) for piece in slices)
            book.lanes[LaneId(operator, lane)] = LaneQueue(consumed, pieces)
            book._uses.update(piece.segment for piece in pieces)
        book.tick, book.run, book.batch = document["tick"], document["run"], document["batch"]
        book.at_s, book.schemas, book.totals = document["at_s"], document["schemas"], document["totals"]
        book.sources, book.plan = document["sources"], document["plan"]
        return book
