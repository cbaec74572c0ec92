"""How the tuples of one edge are shared out among the replicas of the operator behind it.

    app.map("parse", parse, after="clicks", grouping=groupings.load_balancing)
    app.sink("store", store, after="parse", grouping=groupings.fields("page"))

shuffle                evenly; the default
load_balancing         to the replica that was least busy lately
least_loaded           to the replica with the fewest queued tuples
redirection(*columns)  as shuffle, or as fields, until the load is uneven; then to replicas with more room
fields(*columns)       tuples with the same values in these columns go to the same replica
partial_key(*columns)  each key has two replicas; the one with the shorter queue gets the tuple
direct(column)         a column holds the number of the replica
custom(function)       your function chooses the replica
local                  the replica with the sender's number
global_                all tuples to the first replica
all_                   every tuple to every replica
none                   any replica will do; today the same as shuffle
queue_weighted         at random by free room in queues; only on a simulated Storm
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from elastream.errors import TopologyError

KEY_GROUPS = 128
"""Keys fall into so many groups, in every base. A lane owns whole groups: an operator that is reached by keys has at most so
many replicas."""


@dataclass(frozen=True)
class Grouping:
    """One way to choose a lane. `columns` are those that the choice reads; `function` chooses if the kind is custom."""

    kind: str
    columns: tuple[str, ...] = ()
    function: Callable[..., Any] | None = None
    doc: str = field(default="", compare=False, repr=False)
    """Shown by `help(groupings)`."""

    def __post_init__(self) -> None:
        if self.doc:
            object.__setattr__(self, "__doc__", self.doc)

    @property
    def by_groups(self) -> bool:
        """True when keys choose key groups, and lanes own these."""
        return self.kind == "fields" or (self.kind == "redirection" and bool(self.columns))

    def __str__(self) -> str:
        if self.function is not None:
            return f"{self.kind}({getattr(self.function, '__name__', type(self.function).__name__)})"
        return f"{self.kind}({', '.join(self.columns)})" if self.columns else self.kind


shuffle = Grouping("shuffle", doc="Evenly over the active replicas, to within one tuple per task. The default.")

load_balancing = Grouping(
    "load_balancing",
    doc="Each tuple to the active replica that was least busy lately, counting what it was sent since (PSPS, algorithm 1).",
)

least_loaded = Grouping("least_loaded", doc="Each tuple to the active replica with the fewest queued tuples.")

queue_weighted = Grouping(
    "queue_weighted",
    doc="Replicas drawn at random by how empty their queues were within the last second: the grouping that PSPS's authors "
    "published. Only on a simulated Storm.",
)

none = Grouping("none", doc="Any replica will do; today the same as shuffle.")

all_ = Grouping("all", doc="Every active replica gets every tuple.")

global_ = Grouping("global", doc="Every tuple to the first active replica.")

local = Grouping("local", doc="The replica with the same number as the sender's, so that neighbours stay together.")


def fields(*columns: str) -> Grouping:
    """Tuples with the same values in these columns go to the same replica: `fields("page")`."""
    return Grouping("fields", columns)


def redirection(*columns: str) -> Grouping:
    """By what waits in front of each replica, once that is uneven (Dr-Stream, algorithm 1).

    Without columns: shuffle while the load is even, else to the replicas with most room. With columns: as `fields`, but whole
    key groups go to the replicas with most room, with what waits of them and with their state.
    """
    return Grouping("redirection", columns)


def partial_key(*columns: str) -> Grouping:
    """Each key has two replicas to go to; the one with less in front of it gets the tuple."""
    return Grouping("partial_key", columns)


def direct(column: str) -> Grouping:
    """The sender names the replica: the column holds its number, counted among the active ones."""
    return Grouping("direct", (column,))


def custom(function: Callable[..., Any]) -> Grouping:
    """`function(batch, replicas) -> array` chooses: a replica from 0 to replicas - 1 for each row of a `pyarrow.RecordBatch`.

        def by_size(batch, replicas):
            return numpy.asarray(batch.column("bytes")) % replicas

    It runs where tuples are sent, like an operator's function, and must be picklable in the same way. It sees the columns of
    the sender and `_due`. The number of replicas may differ from call to call. A simulator cannot call it and refuses it.
    """
    if not callable(function):
        raise TopologyError(
            f"grouping custom: expected function(batch, replicas) -> array, got {type(function).__name__}; pass a def or a lambda"
        )
    return Grouping("custom", (), function)


STORM_ONLY = frozenset({"queue_weighted"})
"""Groupings that the engine does not have: they are there to repeat what others measured on Storm."""

KINDS = frozenset({"fields", "partial_key", "direct", "redirection", "custom"}) | {
    "shuffle",
    "load_balancing",
    "least_loaded",
    "none",
    "all",
    "global",
    "local",
    *STORM_ONLY,
}
