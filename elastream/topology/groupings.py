"""How the tuples of one edge are shared out among the replicas of the operator behind it."""

from dataclasses import dataclass

KEY_GROUPS = 128
"""Keys fall into so many groups, in every base. A lane owns whole groups: an operator that is reached by keys has at most so
many replicas."""


@dataclass(frozen=True)
class Grouping:
    """One way to choose a lane. `columns` are those that the choice reads."""

    kind: str
    columns: tuple[str, ...] = ()

    @property
    def by_groups(self) -> bool:
        """True when keys choose key groups, and lanes own these."""
        return self.kind == "fields" or (self.kind == "redirection" and bool(self.columns))

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.columns)})" if self.columns else self.kind


shuffle = Grouping("shuffle")
"""Evenly over the active replicas, to within one tuple a task."""

load_balancing = Grouping("load_balancing")
"""Each tuple to the active replica that was least busy lately, what it was sent since included (PSPS, algorithm 1)."""

least_loaded = Grouping("least_loaded")
"""The same by what waits in front of each replica."""

queue_weighted = Grouping("queue_weighted")
"""Replicas drawn at random by how empty their queues were within the last second: the grouping that PSPS's authors published.
Of a simulated Storm only."""

none = Grouping("none")
"""The user does not care; today that is shuffle."""

all_ = Grouping("all")
"""Every active replica gets every tuple."""

global_ = Grouping("global")
"""Every tuple to the first active replica."""

local = Grouping("local")
"""The replica of the same number as the sender's, so that neighbours stay together."""


def fields(*columns: str) -> Grouping:
    """Tuples that agree in these columns go to the same replica."""
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


STORM_ONLY = frozenset({"queue_weighted"})
"""Groupings that the engine does not have: they are there to repeat what others measured on Storm."""

KINDS = frozenset({"fields", "partial_key", "direct", "redirection"}) | {
    "shuffle",
    "load_balancing",
    "least_loaded",
    "none",
    "all",
    "global",
    "local",
    *STORM_ONLY,
}
