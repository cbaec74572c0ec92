"""What a user writes: a topology takes operators until it is built, then it is frozen."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from elastream.errors import TopologyError
from elastream.topology import groupings
from elastream.topology.check import checked_graph
from elastream.topology.graph import Graph
from elastream.topology.groupings import Grouping
from elastream.topology.operators import Edge, Kind, Operator, OperatorName, Replicas
from elastream.topology.schemas import parse_schema

Function = Callable[..., Any]
After = str | Sequence[str]
Groupings = Grouping | dict[str, Grouping]
ReplicaRange = int | tuple[int, int]


class Topology:
    """A graph of operators in the making. `build()` checks it and gives the frozen `Graph`.

    Every operator names those it comes `after`. `replicas` is how many it may have, `(least, most)` or one
    number; `start` is how many it has when the run begins (default: the least). An operator that `waits`, for a
    database or for another service, may have its replicas served in threads of one process; its function must allow that.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._operators: list[Operator] = []
        self._edges: list[Edge] = []
        self._graph: Graph | None = None

    def source(self, name: str, spec: Any, *, replicas: int = 1) -> "Topology":
        """Where tuples enter: `sources.replay(...)`, `sources.kafka(...)`, `sources.dataframe(...)` and so on."""
        schema = getattr(spec, "schema", None)
        if not isinstance(schema, pa.Schema):
            raise TopologyError(
                f"source {name!r}: expected a spec from elastream.sources, got {type(spec).__name__}; "
                "write sources.replay(...) or sources.dataframe(...)"
            )
        self._open(name)
        sizes = _replicas(name, replicas, None)
        self._operators.append(Operator(OperatorName(name), Kind.SOURCE, None, schema, sizes, source=spec))
        return self

    def map(self, name: str, function: Function, **how: Any) -> "Topology":
        """`function(row: dict) -> dict`: one tuple in, one out."""
        return self._add(name, Kind.MAP, function, **how)

    def flat_map(self, name: str, function: Function, **how: Any) -> "Topology":
        """`function(row: dict) -> iterable of dict`: one tuple in, any number out."""
        return self._add(name, Kind.FLAT_MAP, function, **how)

    def filter(self, name: str, function: Function, **how: Any) -> "Topology":
        """`function(row: dict) -> bool`: true keeps the tuple."""
        return self._add(name, Kind.FILTER, function, **how)

    def batch(self, name: str, function: Function, **how: Any) -> "Topology":
        """`function(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch or Table`."""
        return self._add(name, Kind.BATCH, function, **how)

    def pandas(self, name: str, function: Function, **how: Any) -> "Topology":
        """`function(frame: pandas.DataFrame) -> pandas.DataFrame`."""
        return self._add(name, Kind.PANDAS, function, **how)

    def dataframe(self, name: str, function: Function, *, updates: bool = False, **how: Any) -> "Topology":
        """`function(frame: DataFrame) -> DataFrame`: anything that Spark can do with a stream, state included.

        It is called once, when the run starts. The frame has the columns that enter and `_due`, the time a tuple was due; a
        result that keeps `_due` keeps its latency. Aggregations give a row when the watermark says it is final, or with
        `updates=True` whenever it changes.
        """
        return self._add(name, Kind.DATAFRAME, function, updates=updates, **how)

    def sink(self, name: str, to: Any, **how: Any) -> "Topology":
        """Write outside: by `function(batch: pyarrow.RecordBatch, delivery: Delivery)`, or by Spark, as `elastream.sinks` says.

        A tick that is repeated after a crash gives the same rows under the same `delivery.id`, so a function that
        remembers ids is exactly-once.
        """
        if hasattr(to, "writer_for"):
            return self._add(name, Kind.SINK, None, writer=to, **how)
        return self._add(name, Kind.SINK, to, **how)

    def output(self, name: str, **how: Any) -> "Topology":
        """Tuples that wait to be read from outside, as a table or as a streaming DataFrame."""
        return self._add(name, Kind.OUTPUT, None, **how)

    def build(self) -> Graph:
        """Check everything and freeze."""
        if self._graph is None:
            self._graph = checked_graph(self.name, self._operators, self._edges)
        return self._graph

    def __str__(self) -> str:
        """A picture of what is declared so far. Looking does not freeze."""
        try:
            return str(checked_graph(self.name, self._operators, self._edges))
        except TopologyError as error:
            return f"{self.name} (not complete: {error})"

    def _repr_html_(self) -> str:
        try:
            return checked_graph(self.name, self._operators, self._edges)._repr_html_()
        except TopologyError:
            return f"<pre>{escape(str(self))}</pre>"

    def _add(
        self,
        name: str,
        kind: Kind,
        function: Function | None,
        *,
        after: After,
        grouping: Groupings = groupings.shuffle,
        replicas: ReplicaRange = 1,
        start: int | None = None,
        schema: str | pa.Schema | None = None,
        chain: bool = False,
        waits: bool = False,
        writer: Any = None,
        updates: bool = False,
    ) -> "Topology":
        self._open(name)
        before = [after] if isinstance(after, str) else list(after)
        if not before:
            raise TopologyError(f"operator {name!r}: comes after nothing; name one with after='...'")
        if kind is not Kind.OUTPUT and writer is None and not callable(function):
            raise TopologyError(
                f"operator {name!r}: expected a function, got {type(function).__name__}; pass a def or a lambda"
            )
        if chain and (grouping is not groupings.shuffle or replicas != 1 or start is not None):
            raise TopologyError(
                f"operator {name!r}: chained, so it runs in its predecessor's replicas; remove grouping, replicas and start"
            )
        for chosen in grouping.values() if isinstance(grouping, dict) else (grouping,):
            if not isinstance(chosen, Grouping):
                raise TopologyError(
                    f"operator {name!r}: expected a grouping, got {type(chosen).__name__} {chosen!r}; "
                    "use one of elastream.groupings"
                )
        for other in set(grouping) - set(before) if isinstance(grouping, dict) else ():
            raise TopologyError(f"operator {name!r}: grouping for {other!r}, but it comes after {', '.join(before)}")
        columns = self._columns(name, kind, schema, before)
        self._operators.append(
            Operator(
                OperatorName(name),
                kind,
                function,
                columns,
                _replicas(name, replicas, start),
                chained=chain,
                waits=waits,
                writer=writer,
                updates=updates,
            )
        )
        for predecessor in before:
            chosen = grouping.get(predecessor, groupings.shuffle) if isinstance(grouping, dict) else grouping
            self._edges.append(Edge(OperatorName(predecessor), OperatorName(name), chosen))
        return self

    def _columns(self, name: str, kind: Kind, schema: str | pa.Schema | None, before: list[str]) -> pa.Schema:
        """What leaves the operator: as declared, else what enters."""
        if schema is None:
            return None
        if kind in (Kind.FILTER, Kind.SINK, Kind.OUTPUT):
            raise TopologyError(f"operator {name!r}: a {kind} does not change the columns; remove schema")
        return parse_schema(schema)

    def _open(self, name: str) -> None:
        if self._graph is not None:
            raise TopologyError(
                f"operator {name!r}: topology {self.name!r} is built and frozen; declare a new Topology"
            )


def _replicas(name: str, replicas: ReplicaRange, start: int | None) -> Replicas:
    if isinstance(replicas, tuple) and len(replicas) != 2:
        raise TopologyError(
            f"operator {name!r}: replicas must be one number or two, got {replicas}; set replicas=(1, 8)"
        )
    least, most = replicas if isinstance(replicas, tuple) else (replicas, replicas)
    return Replicas(least, most, least if start is None else start)
