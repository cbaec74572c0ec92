"""Operators as they are declared: an `OperatorSpec` enters, an `Operator` and its edges leave, or an error in one line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from elastream.errors import TopologyError
from elastream.topology import groupings
from elastream.topology.groupings import Grouping
from elastream.topology.operators import Edge, KeyedState, Kind, Operator, OperatorName, Replicas
from elastream.topology.ports import SinkSpec
from elastream.topology.schemas import SchemaLike, parse_schema

if TYPE_CHECKING:
    from elastream.topology.stream import Stream

Function = Callable[..., Any]
After: TypeAlias = "str | Stream | Sequence[str | Stream]"
"""Predecessors: one or several, each as a `Stream` or by name."""

Groupings = Grouping | Mapping[Any, Grouping]
"""One grouping, or one per predecessor."""

ReplicaRange = int | tuple[int, int]


@dataclass(frozen=True)
class OperatorSpec:
    """One operator as declared. `OperatorMethods` and `KeyedStream` explain the fields."""

    name: str
    kind: Kind
    function: Function | None = None
    before: tuple[str, ...] = ()
    """The names of its predecessors."""

    schema: SchemaLike = None
    grouping: Groupings = groupings.shuffle
    replicas: ReplicaRange = 1
    start: int | None = None
    chain: bool = False
    waits: bool = False
    writer: SinkSpec | None = None
    updates: bool = False
    keyed: KeyedState | None = None

    def operator(self) -> Operator:
        """The vertex of the graph."""
        self._check()
        return Operator(
            OperatorName(self.name),
            self.kind,
            self.function,
            None if self.schema is None else parse_schema(self.schema),
            replicas_of(self.name, self.replicas, self.start),
            chained=self.chain,
            waits=self.waits,
            writer=self.writer,
            updates=self.updates,
            keyed=self.keyed,
        )

    def edges(self) -> list[Edge]:
        """One edge per predecessor, each with its grouping."""
        by_name = self._groupings()
        return [Edge(OperatorName(before), OperatorName(self.name), by_name[before]) for before in self.before]

    def _check(self) -> None:
        if not self.before:
            raise TopologyError(f"operator {self.name!r}: comes after nothing; name one with after='...'")
        if self.kind is not Kind.OUTPUT and self.writer is None and not callable(self.function):
            raise TopologyError(
                f"operator {self.name!r}: expected a function, got {type(self.function).__name__}; pass a def or a lambda"
            )
        own_sizes = self.grouping is not groupings.shuffle or self.replicas != 1 or self.start is not None
        if self.chain and own_sizes:
            raise TopologyError(
                f"operator {self.name!r}: chained, so it runs in its predecessor's replicas; remove grouping, replicas and start"
            )

    def _groupings(self) -> dict[str, Grouping]:
        """The grouping of the edge from each predecessor."""
        if isinstance(self.grouping, Mapping):
            given = {getattr(before, "name", before): chosen for before, chosen in self.grouping.items()}
            for other in set(given) - set(self.before):
                raise TopologyError(
                    f"operator {self.name!r}: grouping for {other!r}, but it comes after {', '.join(self.before)}"
                )
        else:
            given = dict.fromkeys(self.before, self.grouping)
        for chosen in given.values():
            if not isinstance(chosen, Grouping):
                raise TopologyError(
                    f"operator {self.name!r}: expected a grouping, got {type(chosen).__name__} {chosen!r}; "
                    "use one of elastream.groupings"
                )
        return {before: given.get(before, groupings.shuffle) for before in self.before}


def replicas_of(name: str, replicas: ReplicaRange, start: int | None) -> Replicas:
    """One number or two, and how many there are to begin with."""
    if isinstance(replicas, tuple) and len(replicas) != 2:
        raise TopologyError(
            f"operator {name!r}: replicas must be one number or two, got {replicas}; set replicas=(1, 8)"
        )
    least, most = replicas if isinstance(replicas, tuple) else (replicas, replicas)
    return Replicas(least, most, least if start is None else start)
