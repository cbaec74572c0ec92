"""What the driver gives a task and what a task gives back, both as JSON: work enters, a receipt leaves."""

import json
from dataclasses import dataclass, field
from typing import Any

from elastream.errors import ElastreamError
from elastream.lanes import Appended, Slice
from elastream.workload import Arrivals


@dataclass(frozen=True)
class LaneWork:
    """Serve these tuples of one lane."""

    operator: str
    lane: int
    slices: tuple[Slice, ...]
    budget_s: float
    chunk: int
    """How many tuples to serve between two looks at the clock."""


@dataclass(frozen=True)
class SourceWork:
    """Make the tuples of a replay from number `first` on: up to `stop`, or all before it that are due by then."""

    source: str
    part: int
    first: int
    stop: int
    due_only: bool
    origin_s: float
    arrivals: Arrivals
    """The part of the workload in which these tuples are."""


@dataclass(frozen=True)
class TaskWork:
    """All that one task does in one tick."""

    tick: int
    planned_s: float
    """By the driver's clock; for rows that Spark reads, when their batch began."""
    active: dict[str, tuple[int, ...]]
    queued: dict[str, tuple[int, ...]]
    schemas: dict[str, str]
    lanes: tuple[LaneWork, ...] = ()
    sources: tuple[SourceWork, ...] = ()
    loads: dict[str, dict[str, tuple[tuple[float, ...], float]]] = field(default_factory=dict)
    """By grouping and operator, where it is routed by load: that of each active lane, and what a tuple adds to it."""
    side_by_side: bool = False
    """True: each lane in a thread of its own, for operators that wait."""
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Per source in which rows may come again, which of them were there."""
    t_out_s: float | None = None
    """Tuples that were older than this at `planned_s` are dropped; None: none is."""
    warm_s: float = 0.0
    """Longer than 0: nothing to serve, only wait, so that a worker process is there when it is needed."""

    def to_json(self) -> str:
        sources = [vars(work) | {"arrivals": [work.arrivals.ends_s, work.arrivals.counts]} for work in self.sources]
        plain = vars(self) | {"lanes": [vars(work) for work in self.lanes], "sources": sources}
        return json.dumps(plain, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "TaskWork":
        document = json.loads(text)
        document["lanes"] = tuple(
            LaneWork(**{**work, "slices": tuple(Slice(*piece) for piece in work["slices"])})
            for work in document["lanes"]
        )
        document["sources"] = tuple(
            SourceWork(**{**work, "arrivals": Arrivals(*map(tuple, work["arrivals"]))}) for work in document["sources"]
        )
        return cls(**document)


@dataclass
class OperatorReceipt:
    """What one operator did in one task, on one lane. Chained operators have one each, on their head's lane."""

    operator: str
    lane: int
    consumed: int = 0
    """Tuples taken from the lane; 0 for sources and chained operators."""
    processed: int = 0
    emitted: int = 0
    """Tuples that left the function."""
    failed: int = 0
    late: int = 0
    finished: int = 0
    busy_s: float = 0.0
    cpu_s: float = 0.0
    delivered: dict[str, dict[int, int]] = field(default_factory=dict)
    """Tuples put into lanes, by the operator and the lane they went to."""

    @property
    def given(self) -> int:
        """Tuples put into all lanes together."""
        return sum(sum(lanes.values()) for lanes in self.delivered.values())

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "OperatorReceipt":
        delivered = {to: {int(lane): rows for lane, rows in its.items()} for to, its in document["delivered"].items()}
        return cls(**{**document, "delivered": delivered})


@dataclass
class SourceReceipt:
    """How far a source has been read."""

    source: str
    part: int
    first: int
    stop: int


@dataclass
class Receipt:
    """What one task did. Nothing of it counts until the driver commits it."""

    operators: list[OperatorReceipt] = field(default_factory=list)
    sources: list[SourceReceipt] = field(default_factory=list)
    appended: list[Appended] = field(default_factory=list)
    schemas: dict[str, str] = field(default_factory=dict)
    latencies: dict[str, Any] | None = None
    served_s: float = 0.0
    """How long it served tuples; of lanes that were served side by side, the longest."""
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Per source, what is to be remembered of the rows that came."""
    error: dict[str, str] | None = None
    """`type` and `message` of what went wrong; then nothing else is in it."""

    @classmethod
    def failed(cls, error: ElastreamError) -> "Receipt":
        return cls(error={"type": type(error).__name__, "message": str(error)})

    def to_json(self) -> str:
        return json.dumps(
            {
                "operators": [vars(receipt) for receipt in self.operators],
                "sources": [vars(receipt) for receipt in self.sources],
                "appended": self.appended,
                "schemas": self.schemas,
                "latencies": self.latencies,
                "served_s": self.served_s,
                "memories": self.memories,
                "error": self.error,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> "Receipt":
        document = json.loads(text)
        return cls(
            [OperatorReceipt.from_json(receipt) for receipt in document["operators"]],
            [SourceReceipt(**receipt) for receipt in document["sources"]],
            [Appended(operator, lane, Slice(*piece)) for operator, lane, piece in document["appended"]],
            document["schemas"],
            document["latencies"],
            document["served_s"],
            document["memories"],
            document["error"],
        )
