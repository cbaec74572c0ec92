"""Sizes of operators in words: `4`, or `reader=20,count=16`, and a graph enter; the graph with these sizes leaves."""

from dataclasses import replace

from elastream.errors import SettingError
from elastream.topology import Graph, Kind, Replicas
from elastream.topology.check import checked_graph
from elastream.workload.words import read_pairs, read_value

Sizes = int | str
"""One number for all operators, or a number for each that is named."""


def with_sizes(graph: Graph, pool: Sizes | None, start: Sizes | None) -> Graph:
    """`pool` is the most replicas that operators may have, `start` how many they have when a run begins.

    One number to begin with holds as far as an operator may have so many.
    """
    if pool is None and start is None:
        return graph
    most, first = parse_sizes("pool", pool, graph), parse_sizes("start", start, graph)
    operators = []
    for operator in graph.operators:
        name, now = operator.name, operator.replicas
        largest = most.get(name, now.most)
        begins = first.get(name, min(now.start, largest))
        sizes = Replicas(min(now.least, largest), largest, min(begins, largest) if isinstance(start, int) else begins)
        operators.append(replace(operator, replicas=sizes))
    return checked_graph(graph.name, operators, graph.edges)


def parse_sizes(option: str, sizes: Sizes | None, graph: Graph) -> dict[str, int]:
    """Per operator that has replicas and is meant, its size."""
    names = [str(operator.name) for operator in graph.served if operator.kind is not Kind.OUTPUT]
    if sizes is None:
        return {}
    if isinstance(sizes, int):
        return dict.fromkeys(names, sizes)
    pairs = read_pairs(f"{option} {sizes!r}", sizes, names)
    return {name: read_value(f"{option} {sizes!r}: {name}", word, int) for name, word in pairs.items()}


def read_sizes(word: str) -> Sizes:
    """As on a command line."""
    if "=" in word:
        return word
    try:
        return int(word)
    except ValueError:
        raise SettingError(f"expected a number, or one per operator as in reader=4,count=8, got {word!r}") from None
