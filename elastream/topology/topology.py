"""`Topology`: a graph of operators that grows by declarations until it is built, then it is frozen."""

from collections.abc import Sequence
from html import escape

import pyarrow as pa

from elastream.errors import TopologyError
from elastream.topology.check import checked_graph
from elastream.topology.graph import Graph
from elastream.topology.operators import Edge, Kind, Operator, OperatorName
from elastream.topology.ports import SourceSpec
from elastream.topology.spec import After, OperatorSpec, replicas_of
from elastream.topology.stream import OperatorMethods, Stream


class Topology(OperatorMethods):
    """An application: a graph of operators. `start(app, base)` runs it, `build()` checks it and returns the frozen `Graph`.

        app = Topology("pages")
        clicks = app.source("clicks", sources.replay(...))
        pages = clicks.map("parse", parse, schema="id long, page string", replicas=(1, 8))
        pages.sink("store", store)

    Every declaration returns a `Stream`, behind which the next operators are declared. They can also be declared here, with
    the streams or the names of their predecessors: `app.sink("store", store, after=[pages, "other"])`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._operators: list[Operator] = []
        self._edges: list[Edge] = []
        self._graph: Graph | None = None

    def source(self, name: str, spec: SourceSpec, *, replicas: int = 1) -> Stream:
        """Add a source, where tuples enter: `sources.replay(...)`, `sources.kafka(...)`, `sources.dataframe(...)` and others."""
        if not isinstance(spec, SourceSpec) or not isinstance(spec.schema, pa.Schema):
            raise TopologyError(
                f"source {name!r}: expected a spec from elastream.sources, got {type(spec).__name__}; "
                "write sources.replay(...) or sources.dataframe(...)"
            )
        self._open(name)
        sizes = replicas_of(name, replicas, None)
        self._operators.append(Operator(OperatorName(name), Kind.SOURCE, None, spec.schema, sizes, source=spec))
        return Stream(self, name)

    def build(self) -> Graph:
        """Check everything and freeze."""
        if self._graph is None:
            self._graph = checked_graph(self.name, self._operators, self._edges)
        return self._graph

    def __str__(self) -> str:
        """Draw the operators declared so far. This does not freeze the topology."""
        try:
            return str(checked_graph(self.name, self._operators, self._edges))
        except TopologyError as error:
            return f"{self.name} (not complete: {error})"

    def _repr_html_(self) -> str:
        try:
            return checked_graph(self.name, self._operators, self._edges)._repr_html_()
        except TopologyError:
            return f"<pre>{escape(str(self))}</pre>"

    @property
    def _app(self) -> "Topology":
        return self

    def _declare(self, spec: OperatorSpec) -> Stream:
        """Add an operator and its edges."""
        self._open(spec.name)
        operator, edges = spec.operator(), spec.edges()
        ends = {known.name: known.kind for known in self._operators if known.kind.ends_the_graph}
        for before in spec.before:
            if before in ends:
                raise TopologyError(
                    f"{ends[OperatorName(before)]} {before!r}: has a successor {spec.name!r}; "
                    f"put {spec.name!r} after what comes before {before!r}"
                )
        self._operators.append(operator)
        self._edges += edges
        return Stream(self, spec.name)

    def _before(self, name: str, after: After) -> tuple[str, ...]:
        before = list(after) if isinstance(after, Sequence) and not isinstance(after, str) else [after]
        for one in before:
            if isinstance(one, Stream) and one.topology is not self:
                raise TopologyError(
                    f"operator {name!r}: {one.name!r} is a stream of another topology, {one.topology.name!r}; "
                    f"declare both in {self.name!r}"
                )
            if not isinstance(one, str | Stream):
                raise TopologyError(
                    f"operator {name!r}: after= takes Streams and names, got {type(one).__name__} {one!r}"
                )
        return tuple(one.name if isinstance(one, Stream) else one for one in before)

    def _entering(self, name: str, before: tuple[str, ...]) -> pa.Schema:
        """The columns that come from a predecessor that is declared already."""
        if not before:
            raise TopologyError(f"window {name!r}: comes after nothing; name one with after='...'")
        known = {operator.name: operator for operator in self._operators}
        first = before[0]
        while first in known and known[OperatorName(first)].schema is None:
            first = next((edge.source for edge in self._edges if edge.target == first), "")
        if first not in known:
            raise TopologyError(
                f"window {name!r}: comes after {before[0]!r}, which is not declared yet; declare it before"
            )
        return known[OperatorName(first)].schema

    def _open(self, name: str) -> None:
        if self._graph is not None:
            raise TopologyError(
                f"operator {name!r}: topology {self.name!r} is built and frozen; declare a new Topology"
            )


App = Topology | Stream | Graph
"""An application as it is started: its topology, any stream of it, or the graph that was built."""


def graph_of(app: App) -> Graph:
    """The checked graph of an application."""
    if isinstance(app, Stream):
        return app.topology.build()
    return app.build() if isinstance(app, Topology) else app
