"""The frozen, checked graph: what the engine runs. Operators stand in topological order."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from elastream.topology.drawing import draw_html, draw_text
from elastream.topology.operators import Edge, Kind, Operator


def _grouped(pairs: Iterable[tuple[str, Edge]]) -> dict[str, tuple[Edge, ...]]:
    groups: dict[str, tuple[Edge, ...]] = {}
    for name, edge in pairs:
        groups[name] = (*groups.get(name, ()), edge)
    return groups


@dataclass(frozen=True)
class Graph:
    """Built by `Topology.build()`. Everything in it has been checked."""

    name: str
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...]

    @cached_property
    def _by_name(self) -> dict[str, Operator]:
        return {operator.name: operator for operator in self.operators}

    def __getitem__(self, name: str) -> Operator:
        return self._by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @cached_property
    def _into(self) -> dict[str, tuple[Edge, ...]]:
        return _grouped((edge.target, edge) for edge in self.edges)

    @cached_property
    def _from(self) -> dict[str, tuple[Edge, ...]]:
        return _grouped((edge.source, edge) for edge in self.edges)

    def edges_into(self, name: str) -> tuple[Edge, ...]:
        return self._into.get(name, ())

    def edges_from(self, name: str) -> tuple[Edge, ...]:
        return self._from.get(name, ())

    def input_schema(self, name: str) -> pa.Schema:
        """The columns that reach an operator, without the due time."""
        return self[self.edges_into(name)[0].source].schema

    @cached_property
    def sources(self) -> tuple[Operator, ...]:
        return tuple(o for o in self.operators if o.kind is Kind.SOURCE)

    @cached_property
    def served(self) -> tuple[Operator, ...]:
        """The operators that have lanes: neither sources nor chained to their predecessor."""
        return tuple(o for o in self.operators if o.kind is not Kind.SOURCE and not o.chained)

    @cached_property
    def reached_by_keys(self) -> tuple[str, ...]:
        """The operators whose replicas own key groups: some edge into them is shared out by a key."""
        return tuple(o.name for o in self.served if any(edge.grouping.keyed for edge in self.edges_into(o.name)))

    def chain(self, head: str) -> tuple[Operator, ...]:
        """The operators that run in one task, the head first."""
        members = [self[head]]
        while True:
            after = [self[e.target] for e in self.edges_from(members[-1].name) if self[e.target].chained]
            if not after:
                return tuple(members)
            members.append(after[0])

    def edges_leaving(self, head: str) -> tuple[Edge, ...]:
        """The edges over which the tuples of a chain go to lanes."""
        return self.edges_from(self.chain(head)[-1].name)

    def __str__(self) -> str:
        return draw_text(self)

    def _repr_html_(self) -> str:
        return draw_html(self)

    def __reduce__(self) -> tuple[type["Graph"], tuple[object, ...]]:
        return (Graph, (self.name, self.operators, self.edges))
