"""Where event times begin: the operators at which the time column of a keyed operator or window first exists.

A time column is followed from the operator that reads it back to its inputs, as long as they have a timestamp column of that
name. The watermark is measured there. A dataframe operator keeps rows in Spark's state, so event times begin anew behind it.
"""

import pyarrow as pa

from elastream.topology import Graph, Kind
from elastream.workload.replay import Replay


def begins_at(graph: Graph, operator: str, column: str) -> bool:
    """True if the time column that leaves an operator does not come from its inputs."""
    if graph[operator].kind in (Kind.SOURCE, Kind.DATAFRAME):
        return True
    entering = graph.input_schema(operator)
    return column not in entering.names or not pa.types.is_timestamp(entering.field(column).type)


def event_time_origins(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Per operator at which event times begin, the columns."""
    columns: dict[str, set[str]] = {}
    for operator in graph.operators:
        if operator.keyed is not None and operator.keyed.event_time is not None:
            for name in _origins(graph, operator.name, operator.keyed.event_time):
                columns.setdefault(name, set()).add(operator.keyed.event_time)
    return {name: tuple(sorted(found)) for name, found in columns.items()}


def origin_name(source: str, part: str) -> str:
    """The name of a part of a source; a source whose rows have one order has one part, without a name."""
    return f"{source}/{part}"


def tracked_operators(graph: Graph) -> frozenset[str]:
    """Operators with lanes in front of operators that make a time column of rows from several parts of sources.

    Their lanes keep the parts apart, so that the slowest is known where the column is made.
    """
    tracked: set[str] = set()
    for name in event_time_origins(graph):
        heads, sources = _heads_before(graph, name)
        if len(sources) > 1 or any(not isinstance(graph[source].source, Replay) for source in sources):
            tracked |= heads
    return frozenset(tracked)


def sources_before(graph: Graph, name: str) -> set[str]:
    """The sources from which rows come to an operator, not through a dataframe operator."""
    return _heads_before(graph, name)[1]


def _heads_before(graph: Graph, name: str) -> tuple[set[str], set[str]]:
    """The operators with lanes on the way to where an operator runs, and the sources; not beyond dataframe operators."""
    heads: set[str] = set()
    sources: set[str] = set()
    left: list[str] = [name]
    while left:
        operator = graph[left.pop()]
        if operator.kind is Kind.SOURCE:
            sources.add(operator.name)
        elif operator.name not in heads and operator.kind is not Kind.DATAFRAME:
            if not operator.chained:
                heads.add(operator.name)
            left += [edge.source for edge in graph.edges_into(operator.name)]
    return heads, sources


def _origins(graph: Graph, reader: str, column: str) -> set[str]:
    origins: set[str] = set()
    seen: set[str] = set()
    left: list[str] = [edge.source for edge in graph.edges_into(reader)]
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        if begins_at(graph, name, column):
            origins.add(name)
        else:
            left += [edge.source for edge in graph.edges_into(name)]
    return origins
