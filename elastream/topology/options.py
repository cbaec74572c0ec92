"""The options of operators: which words each kind takes, and errors in our words for all others."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Required, TypedDict

from elastream.errors import TopologyError
from elastream.topology.groupings import Grouping
from elastream.topology.operators import Kind, Replicas
from elastream.topology.schemas import SchemaLike

Function = Callable[..., Any]
After = str | Sequence[str]
Groupings = Grouping | dict[str, Grouping]
ReplicaRange = int | tuple[int, int]


class OutputOptions(TypedDict):
    """Where an output stands in the graph."""

    after: After


class OperatorOptions(TypedDict, total=False):
    """How an operator stands in the graph, and with how many replicas; see `Topology`."""

    after: Required[After]
    grouping: Groupings
    replicas: ReplicaRange
    start: int | None
    schema: SchemaLike
    chain: bool
    waits: bool


class KeyedOptions(OperatorOptions, total=False):
    """The same for an operator that remembers something of every key."""

    key: Required[str | Sequence[str]]
    state: Required[SchemaLike]
    initial: dict[str, Any]
    ttl_s: float | None
    on_timer: Function | None
    event_time: str | None
    lateness_s: float
    drop_late: bool
    idle_s: float
    merge: Function | None


class WindowOptions(TypedDict, total=False):
    """Windows over event time; see `Topology.window`."""

    after: Required[After]
    key: Required[str | Sequence[str]]
    time: Required[str]
    aggregate: Required[dict[str, str]]
    every_s: float
    length_s: float
    session_s: float
    lateness_s: float
    idle_s: float
    replicas: ReplicaRange
    start: int | None
    waits: bool


KEYED_WORDS = (
    *("key", "state", "initial", "ttl_s", "on_timer"),
    *("event_time", "lateness_s", "drop_late", "idle_s", "merge"),
)
"""What a keyed operator takes besides the options of all operators."""


def check_words(name: str, kind: Kind, how: Mapping[str, object]) -> None:
    """Refuse what a function's signature would refuse, in our words."""
    keyed = kind in (Kind.KEYED, Kind.KEYED_BATCH, Kind.KEYED_PANDAS)
    known = list((OutputOptions if kind is Kind.OUTPUT else OperatorOptions).__annotations__)
    known += KEYED_WORDS if keyed else ()
    check_known(name, kind, how, known)
    if "after" not in how:
        raise TopologyError(f"{kind} {name!r}: comes after nothing; name one with after='...'")


def check_known(name: str, kind: str, how: Mapping[str, object], known: list[str]) -> None:
    """Refuse a word that is not known, with the one that was perhaps meant."""
    for word in sorted(set(how) - set(known)):
        close = get_close_matches(word, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(known)}"
        raise TopologyError(f"{kind} {name!r}: takes no {word!r}; {hint}")


def replicas_of(name: str, replicas: ReplicaRange, start: int | None) -> Replicas:
    """One number or two, and how many there are to begin with."""
    if isinstance(replicas, tuple) and len(replicas) != 2:
        raise TopologyError(
            f"operator {name!r}: replicas must be one number or two, got {replicas}; set replicas=(1, 8)"
        )
    least, most = replicas if isinstance(replicas, tuple) else (replicas, replicas)
    return Replicas(least, most, least if start is None else start)
