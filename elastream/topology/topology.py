"""What a user writes: a topology takes operators until it is built, then it is frozen."""

from html import escape
from typing import Any, Unpack

import pyarrow as pa

from elastream.errors import TopologyError
from elastream.topology import groupings
from elastream.topology.check import checked_graph
from elastream.topology.graph import Graph
from elastream.topology.groupings import Grouping
from elastream.topology.operators import IDLE_S, Edge, KeyedState, Kind, Operator, OperatorName
from elastream.topology.options import (
    KEYED_WORDS,
    After,
    Function,
    KeyedOptions,
    OperatorOptions,
    OutputOptions,
    WindowOptions,
    check_known,
    check_words,
    replicas_of,
)
from elastream.topology.schemas import SchemaLike, parse_schema
from elastream.topology.windows import windows_of


class Topology:
    """A graph of operators in the making. `build()` checks it and gives the frozen `Graph`.

    Every operator names those it comes `after`. `replicas` is how many it may have, `(least, most)` or one
    number; `start` is how many it has when the run begins (default: the least). `schema` are the columns that leave it: text
    such as "id long, name string", a `pyarrow.Schema`, Spark's `StructType` or a dataclass. An operator that `waits`, for a
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
        sizes = replicas_of(name, replicas, None)
        self._operators.append(Operator(OperatorName(name), Kind.SOURCE, None, schema, sizes, source=spec))
        return self

    def map(self, name: str, function: Function, **how: Unpack[OperatorOptions]) -> "Topology":
        """`function(row: dict) -> dict`: one tuple in, one out."""
        return self._add(name, Kind.MAP, function, how)

    def flat_map(self, name: str, function: Function, **how: Unpack[OperatorOptions]) -> "Topology":
        """`function(row: dict) -> iterable of dict`: one tuple in, any number out."""
        return self._add(name, Kind.FLAT_MAP, function, how)

    def filter(self, name: str, function: Function, **how: Unpack[OperatorOptions]) -> "Topology":
        """`function(row: dict) -> bool`: true keeps the tuple."""
        return self._add(name, Kind.FILTER, function, how)

    def batch(self, name: str, function: Function, **how: Unpack[OperatorOptions]) -> "Topology":
        """`function(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch or Table`."""
        return self._add(name, Kind.BATCH, function, how)

    def pandas(self, name: str, function: Function, **how: Unpack[OperatorOptions]) -> "Topology":
        """`function(frame: pandas.DataFrame) -> pandas.DataFrame`."""
        return self._add(name, Kind.PANDAS, function, how)

    def dataframe(
        self, name: str, function: Function, *, updates: bool = False, **how: Unpack[OperatorOptions]
    ) -> "Topology":
        """`function(frame: DataFrame) -> DataFrame`: anything that Spark can do with a stream, state included.

        It is called once, when the run starts. The frame has the columns that enter and `_due`, the time a tuple was due; a
        result that keeps `_due` keeps its latency. Aggregations give a row when the watermark says it is final, or with
        `updates=True` whenever it changes.
        """
        return self._add(name, Kind.DATAFRAME, function, how, updates=updates)

    def keyed(self, name: str, function: Function, **how: Unpack[KeyedOptions]) -> "Topology":
        """`function(key, rows: list of dict, state) -> iterable of dict`: some tuples of one key, in order, and what is known of it.

        `state` has an attribute for each column of `state="n long, ..."`, None or as `initial={"n": 0}` says when the key is
        new. What the function sets is kept; `state.remove()` forgets the key. With several columns as `key`, the key is a tuple.

        `state.wake_at(time)` has `on_timer(key, time, state) -> iterable of dict` called when that time has come, or with
        `state.wake_at_event(time)` when the watermark of column `event_time` has passed it; see `window` for how it moves.
        Times are seconds since 1970 or datetimes, and come back as seconds.

        With `grouping=groupings.redirection(key)` and `merge(key, part, state) -> iterable of dict`, a key that is too much for one
        replica is split: other replicas serve some of its tuples from the initial state, what they make of it is given
        to `merge`, where the key lives, and only what `merge` yields leaves. The order of such a key's tuples is not kept.
        """
        return self._add_keyed(name, Kind.KEYED, function, how)

    def keyed_batch(self, name: str, function: Function, **how: Unpack[KeyedOptions]) -> "Topology":
        """`function(batch, state) -> (batch, state)`, all `pyarrow.RecordBatch`: tuples of many keys, and a row for each key.

        The state has the columns of the key and of the state. Rows that are given back are kept; one whose state is all null
        is forgotten, and a key that is not given back stays as it was. `merge`, as for `keyed`, is here
        `merge(parts, state) -> (batch, state)`: parts have the columns of the state, and a key may have several.
        """
        return self._add_keyed(name, Kind.KEYED_BATCH, function, how)

    def keyed_pandas(self, name: str, function: Function, **how: Unpack[KeyedOptions]) -> "Topology":
        """The same with `pandas.DataFrame`."""
        return self._add_keyed(name, Kind.KEYED_PANDAS, function, how)

    def window(self, name: str, **how: Unpack[WindowOptions]) -> "Topology":
        """A row per key and window of event time, when the watermark has passed the window's end.

        `every_s=60` are windows that follow one another, `every_s=10, length_s=60` ones that overlap, `session_s=30` ones that
        end when a key has not come for so long. `aggregate={"n": "count()", "most": "max(bytes)"}` are the columns, behind the
        key, `window_start` and `window_end`; there are count, sum, min, max and mean. A tuple that is older than the watermark is
        dropped, and counted as late.

        The watermark is `lateness_s` behind the slowest of all inputs and of their partitions, and waits for all rows that are on
        their way. An input that is silent for `idle_s` seconds, 5 if not given, does not hold it back; `math.inf`: it always does.
        """
        if missing := [word for word in ("key", "time", "aggregate", "after") if word not in how]:
            raise TopologyError(f"window {name!r}: takes {missing[0]}=; see Topology.window")
        check_known(name, "window", how, [*WindowOptions.__annotations__])
        key = (how["key"],) if isinstance(how["key"], str) else tuple(how["key"])
        entering = self._entering(name, how["after"])
        for column in (*key, how["time"]):
            if column not in entering.names:
                raise TopologyError(
                    f"window {name!r}: no column {column!r} enters; there are {', '.join(entering.names)}"
                )
        made = windows_of(
            name,
            key,
            how["time"],
            entering,
            every_s=how.get("every_s"),
            length_s=how.get("length_s"),
            session_s=how.get("session_s"),
            aggregate=how["aggregate"],
        )
        rest: Any = {word: how[word] for word in ("after", "replicas", "start", "waits", "idle_s") if word in how}
        return self.keyed(
            name,
            made.add,
            key=key,
            state=made.state,
            schema=made.schema(entering),
            on_timer=made.close,
            event_time=how["time"],
            lateness_s=how.get("lateness_s", 0.0),
            drop_late=True,
            **rest,
        )

    def sink(self, name: str, to: Any, **how: Unpack[OperatorOptions]) -> "Topology":
        """Write outside: by `function(batch: pyarrow.RecordBatch, delivery: Delivery)`, or by Spark, as `elastream.sinks` says.

        A tick that is repeated after a crash gives the same rows under the same `delivery.id`, so a function that
        remembers ids is exactly-once.
        """
        if hasattr(to, "writer_for"):
            return self._add(name, Kind.SINK, None, how, writer=to)
        return self._add(name, Kind.SINK, to, how)

    def output(self, name: str, **how: Unpack[OutputOptions]) -> "Topology":
        """Tuples that wait to be read from outside, as a table or as a streaming DataFrame. Readers have no replicas."""
        check_words(name, Kind.OUTPUT, how)
        return self._add(name, Kind.OUTPUT, None, {"after": how["after"]})

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

    def _add_keyed(self, name: str, kind: Kind, function: Function, how: KeyedOptions) -> "Topology":
        check_words(name, kind, how)
        for word in ("key", "state"):
            if word not in how:
                raise TopologyError(f"{kind} {name!r}: takes {word}=; write key='word', state='n long'")
        key = (how["key"],) if isinstance(how["key"], str) else tuple(how["key"])
        grouping = how.get("grouping", groupings.fields(*key))
        if "chain" in how or grouping not in (groupings.fields(*key), groupings.redirection(*key)):
            raise TopologyError(
                f"{kind} {name!r}: its key chooses the replica; remove chain, and grouping or make it redirection{key}"
            )
        state = KeyedState(
            key,
            parse_schema(how["state"]),
            dict(how.get("initial", {})),
            how.get("ttl_s"),
            how.get("on_timer"),
            how.get("event_time"),
            how.get("lateness_s", 0.0),
            how.get("drop_late", False),
            how.get("idle_s", IDLE_S),
            how.get("merge"),
        )
        rest: Any = {word: value for word, value in how.items() if word not in KEYED_WORDS}
        rest["grouping"] = grouping
        return self._add(name, kind, function, rest, keyed=state)

    def _add(
        self,
        name: str,
        kind: Kind,
        function: Function | None,
        how: OperatorOptions,
        *,
        writer: Any = None,
        updates: bool = False,
        keyed: KeyedState | None = None,
    ) -> "Topology":
        self._open(name)
        check_words(name, kind, how)
        grouping, replicas, start = how.get("grouping", groupings.shuffle), how.get("replicas", 1), how.get("start")
        chain = how.get("chain", False)
        before = [how["after"]] if isinstance(how["after"], str) else list(how["after"])
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
        columns = self._columns(name, kind, how.get("schema"))
        self._operators.append(
            Operator(
                OperatorName(name),
                kind,
                function,
                columns,
                replicas_of(name, replicas, start),
                chained=chain,
                waits=how.get("waits", False),
                writer=writer,
                updates=updates,
                keyed=keyed,
            )
        )
        for predecessor in before:
            chosen = grouping.get(predecessor, groupings.shuffle) if isinstance(grouping, dict) else grouping
            self._edges.append(Edge(OperatorName(predecessor), OperatorName(name), chosen))
        return self

    def _columns(self, name: str, kind: Kind, schema: SchemaLike) -> pa.Schema:
        """What leaves the operator: as declared, else what enters."""
        if schema is None:
            return None
        if kind in (Kind.FILTER, Kind.SINK, Kind.OUTPUT):
            raise TopologyError(f"operator {name!r}: a {kind} does not change the columns; remove schema")
        return parse_schema(schema)

    def _entering(self, name: str, after: After) -> pa.Schema:
        """The columns that come from a predecessor that is declared already."""
        known = {operator.name: operator for operator in self._operators}
        wanted = after if isinstance(after, str) else next(iter(after), "")
        while wanted in known and known[OperatorName(wanted)].schema is None:
            wanted = next((edge.source for edge in self._edges if edge.target == wanted), "")
        if wanted not in known:
            raise TopologyError(f"window {name!r}: comes after {after!r}, which is not declared yet; declare it before")
        return known[OperatorName(wanted)].schema

    def _open(self, name: str) -> None:
        if self._graph is not None:
            raise TopologyError(
                f"operator {name!r}: topology {self.name!r} is built and frozen; declare a new Topology"
            )
