"""The rules a graph must keep. Declared parts enter; a frozen graph in topological order leaves, or an error."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter

import pyarrow as pa

from elastream.errors import TopologyError
from elastream.topology.graph import Graph
from elastream.topology.groupings import KEY_GROUPS
from elastream.topology.operators import IDLE_S, LARGEST_POOL, Edge, Kind, Operator


def checked_graph(name: str, operators: Sequence[Operator], edges: Sequence[Edge]) -> Graph:
    _names(operators)
    _known(operators, edges)
    for operator in operators:
        _replicas(operator)
    graph = Graph(name, _with_columns(_in_order(operators, edges), edges), tuple(edges))
    if not graph.sources:
        raise TopologyError(f"topology {name!r}: no source; begin with topology.source(name, spec)")
    for operator in graph.operators:
        _ends(graph, operator)
        _inputs(graph, operator)
        _chaining(graph, operator)
        _dataframe(graph, operator)
        _keyed(graph, operator)
    for edge in graph.edges:
        _grouping(graph, edge)
    for reached in graph.reached_by_keys:
        if graph[reached].replicas.most > KEY_GROUPS:
            raise TopologyError(
                f"operator {reached!r}: keys fall into {KEY_GROUPS} groups, so no more replicas than that could be used, got "
                f"{graph[reached].replicas.most}; set replicas=(1, {KEY_GROUPS})"
            )
    return graph


def check_engine_groupings(graph: Graph) -> None:
    """Refuse groupings that only a simulated Storm has; for whoever runs a graph on the engine, or simulates the engine."""
    for edge in graph.edges:
        if edge.grouping.simulated_only:
            raise TopologyError(
                f"edge {edge.source!r} -> {edge.target!r}: grouping {edge.grouping} is of a simulated Storm only; "
                "use least_loaded, or simulate with --system storm"
            )


def _names(operators: Sequence[Operator]) -> None:
    seen: set[str] = set()
    for operator in operators:
        if operator.name in seen:
            raise TopologyError(f"operator {operator.name!r}: two operators of one name; rename one of them")
        if not operator.name.isprintable() or not operator.name or "/" in operator.name or operator.name in (".", ".."):
            raise TopologyError(
                f"operator {operator.name!r}: a name is not empty, has no '/' and is not '.' or '..'; rename it"
            )
        if operator.name == "dead-letters":
            raise TopologyError(f"operator {operator.name!r}: that is where failed tuples go in every run; rename it")
        seen.add(operator.name)


def _known(operators: Sequence[Operator], edges: Sequence[Edge]) -> None:
    names = [operator.name for operator in operators]
    twice = next((edge for edge, n in Counter((e.source, e.target) for e in edges).items() if n > 1), None)
    if twice:
        raise TopologyError(f"operator {twice[1]!r}: comes after {twice[0]!r} twice; name it once")
    for edge in edges:
        if edge.source not in names:
            close = get_close_matches(edge.source, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"declared are {', '.join(map(repr, names))}"
            raise TopologyError(f"operator {edge.target!r}: comes after {edge.source!r}, which is not declared; {hint}")


def _replicas(operator: Operator) -> None:
    least, most, start = operator.replicas.least, operator.replicas.most, operator.replicas.start
    for number in (least, most):
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= LARGEST_POOL:
            raise TopologyError(
                f"operator {operator.name!r}: replicas must be 1..{LARGEST_POOL}, got {number!r}; set replicas=(1, 8)"
            )
    if least > most:
        raise TopologyError(
            f"operator {operator.name!r}: replicas ({least}, {most}) go down; set replicas=({most}, {least})"
        )
    if isinstance(start, bool) or not isinstance(start, int) or not least <= start <= most:
        raise TopologyError(
            f"operator {operator.name!r}: start must be {least}..{most}, got {start!r}; set start={least}"
        )


def _in_order(operators: Sequence[Operator], edges: Sequence[Edge]) -> tuple[Operator, ...]:
    by_name = {operator.name: operator for operator in operators}
    sorter: TopologicalSorter[str] = TopologicalSorter({operator.name: () for operator in operators})
    for edge in edges:
        sorter.add(edge.target, edge.source)
    try:
        return tuple(by_name[name] for name in sorter.static_order())  # type: ignore[index]
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise TopologyError(f"cycle {circle}; tuples would go round for ever: remove one of these edges") from None


def _with_columns(operators: Sequence[Operator], edges: Sequence[Edge]) -> tuple[Operator, ...]:
    """An operator that declares no columns gives those that enter; in topological order they are known."""
    done: dict[str, Operator] = {}
    for operator in operators:
        before = next((edge.source for edge in edges if edge.target == operator.name), None)
        if operator.schema is None and before is not None:
            operator = replace(operator, schema=done[before].schema)
        done[operator.name] = operator
    return tuple(done.values())


def _ends(graph: Graph, operator: Operator) -> None:
    after = graph.edges_from(operator.name)
    if operator.kind.ends_the_graph and after:
        raise TopologyError(
            f"{operator.kind} {operator.name!r}: has a successor {after[0].target!r}; "
            f"put {after[0].target!r} after what comes before {operator.name!r}"
        )
    if not operator.kind.ends_the_graph and not after:
        raise TopologyError(
            f"operator {operator.name!r}: its tuples go nowhere; add a sink or an output after {operator.name!r}"
        )


def _inputs(graph: Graph, operator: Operator) -> None:
    schemas = {edge.source: graph[edge.source].schema for edge in graph.edges_into(operator.name)}
    first = next(iter(schemas), None)
    for name, schema in schemas.items():
        if not schema.equals(schemas[first]):  # type: ignore[index]
            raise TopologyError(
                f"operator {operator.name!r}: {first!r} gives {_columns(schemas[first])} "  # type: ignore[index]
                f"but {name!r} gives {_columns(schema)}; all predecessors must give the same columns"
            )


def _chaining(graph: Graph, operator: Operator) -> None:
    if not operator.chained:
        return
    before = graph.edges_into(operator.name)
    if len(before) > 1:
        raise TopologyError(f"operator {operator.name!r}: chained after {len(before)} operators; chain after one")
    siblings = graph.edges_from(before[0].source)
    if len(siblings) > 1:
        raise TopologyError(
            f"operator {operator.name!r}: chained after {before[0].source!r}, which also feeds "
            f"{', '.join(repr(e.target) for e in siblings if e.target != operator.name)}; remove chain=True"
        )
    if graph[before[0].source].kind is Kind.SOURCE and operator.kind.ends_the_graph:
        raise TopologyError(
            f"operator {operator.name!r}: a {operator.kind} cannot be chained to a source; remove chain=True"
        )
    if operator.writer is not None:
        raise TopologyError(f"sink {operator.name!r}: Spark writes what waits in its lanes; remove chain=True")


def _dataframe(graph: Graph, operator: Operator) -> None:
    """Rows of a dataframe operator come in another order when a batch is repeated."""
    if operator.kind is not Kind.DATAFRAME:
        return
    for member in graph.chain(operator.name)[1:]:
        if member.kind is Kind.SINK:
            raise TopologyError(
                f"sink {member.name!r}: chained behind the dataframe {operator.name!r}, whose rows come in another order when "
                "a tick is repeated; remove chain=True"
            )


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""The units in which Arrow keeps times."""

_STATE_WORDS = ("remove", "wake_at", "wake_at_event")


def _keyed(graph: Graph, operator: Operator) -> None:
    """Its key must be among its columns, and its state must have names that Python can say."""
    if operator.keyed is None:
        return
    here, columns = f"{operator.kind} {operator.name!r}", graph.input_schema(operator.name).names
    state = operator.keyed
    if not state.key or len(set(state.key)) < len(state.key):
        raise TopologyError(
            f"{here}: a key is one or more columns, each once, got {list(state.key)}; write key_by('word')"
        )
    for column in state.key:
        if column not in columns:
            close = get_close_matches(column, columns, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(columns)}"
            raise TopologyError(f"{here}: key {column!r} is no column that enters; {hint}")
    for name in state.schema.names:
        if not name.isidentifier() or name.startswith("_") or name in (*_STATE_WORDS, *state.key):
            raise TopologyError(
                f"{here}: state column {name!r}: a name that Python can say, without '_' in front, not the key's and none of {', '.join(_STATE_WORDS)}; rename it"
            )
    for name in state.initial:
        if name not in state.schema.names:
            raise TopologyError(
                f"{here}: initial has {name!r}, which is no state column; there are {', '.join(state.schema.names)}"
            )
    if state.event_time is not None:
        entering = graph.input_schema(operator.name)
        if state.event_time not in columns or not pa.types.is_timestamp(entering.field(state.event_time).type):
            raise TopologyError(
                f"{here}: event_time {state.event_time!r} is no timestamp that enters; there are {_columns(entering)}"
            )
    if not 0 <= state.lateness_s < math.inf or (state.lateness_s and state.event_time is None):
        raise TopologyError(f"{here}: lateness_s must be 0 or more, and needs event_time, got {state.lateness_s}")
    if state.event_time is not None:
        kind = graph.input_schema(operator.name).field(state.event_time).type
        units = state.lateness_s * _PER_SECOND[kind.unit]
        if kind.unit in ("s", "ms") and abs(units - round(units)) > 1e-6:
            raise TopologyError(
                f"{here}: event_time {state.event_time!r} is {kind}, so lateness_s must be whole {kind.unit}, got "
                f"{state.lateness_s}; round it, or cast the column to timestamp[us]"
            )
    if not state.idle_s >= 0 or (state.idle_s != IDLE_S and state.event_time is None):
        raise TopologyError(f"{here}: idle_s must be 0 or more, and needs event_time, got {state.idle_s}; set idle_s=5")
    if state.drop_late and state.event_time is None:
        raise TopologyError(f"{here}: drop_late needs event_time; name the column that says when a tuple happened")
    if state.on_timer is not None:
        if operator.kind is not Kind.KEYED or not callable(state.on_timer):
            raise TopologyError(
                f"{here}: on_timer is a function of an operator whose function takes one key; use mode='rows'"
            )
        if graph.chain(operator.name)[-1].kind is Kind.SINK:
            raise TopologyError(
                f"{here}: has timers, and a sink chained to it would not see the same rows again; remove chain=True"
            )
    if state.merge is not None:
        if not callable(state.merge):
            raise TopologyError(f"{here}: merge must be a function, got {state.merge!r}")
        if any(not edge.grouping.redirects for edge in graph.edges_into(operator.name)):
            raise TopologyError(f"{here}: merge is for keys that are split by load; write key_by(..., redirect=True)")
        if state.on_timer is not None or state.event_time is not None:
            raise TopologyError(f"{here}: a part of a key has no timers; remove merge, or on_timer and event_time")
        if graph.chain(operator.name)[-1].kind is Kind.SINK:
            raise TopologyError(
                f"{here}: with merge a sink chained to it would not see the same rows again; remove chain=True"
            )
    if state.ttl_s is not None and not state.ttl_s > 0:
        raise TopologyError(f"{here}: ttl_s must be more than 0, got {state.ttl_s}; None keeps keys for ever")


def _grouping(graph: Graph, edge: Edge) -> None:
    where = f"edge {edge.source!r} -> {edge.target!r}"
    columns = graph[edge.source].schema.names
    if edge.grouping.needs_columns and not edge.grouping.columns:
        raise TopologyError(
            f"{where}: grouping {edge.grouping.name} without a key column; write {edge.grouping.name}('id')"
        )
    for column in edge.grouping.columns:
        if column not in columns:
            raise TopologyError(
                f"{where}: grouping {edge.grouping} wants column {column!r}, but {edge.source!r} gives "
                f"{', '.join(columns)}; name one of these, or add {column!r} to the schema of {edge.source!r}"
            )


def _columns(schema: object) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)  # type: ignore[attr-defined]
