"""Topologies that tests declare: a source of words, a diamond, and what a wrong one is told."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from elastream import Graph, Topology, groupings, sources, workload
from elastream.errors import TopologyError
from elastream.topology import parse_schema

Declare = Callable[[Topology], Any]


def unchanged(x: Any) -> Any:
    return x


def keep_nothing(batch: pa.RecordBatch, delivery: Any) -> None:
    """A sink that keeps nothing."""


def words(schema: str = "id long, word string") -> sources.Replay:
    columns = parse_schema(schema)
    return sources.replay(
        workload.constant(10, 1), columns, lambda numbers: {name: numbers.tolist() for name in columns.names}
    )


def reading() -> Topology:
    return Topology("words").source("read", words()).topology


def message_of(declare: Declare) -> str:
    """What the user is told, at the declaration or at the build."""
    with pytest.raises(TopologyError) as caught:
        topology = reading()
        declare(topology)
        topology.build()
    return str(caught.value)


def diamond() -> Graph:
    """read -> clean (-> trim, chained) -> left and right -> join -> store; left also feeds a table."""
    return (
        Topology("diamond")
        .source("read", words(), replicas=2)
        .map("clean", unchanged, replicas=(1, 4), start=2, grouping=groupings.fields("id"))
        .map("trim", unchanged, schema="id long, n int", chain=True)
        .filter("left", bool, replicas=3, grouping=groupings.partial_key("id", "n"))
        .topology.filter("right", bool, after="trim", grouping=groupings.global_)
        .topology.map(
            "join", unchanged, after=["left", "right"], grouping={"left": groupings.all_, "right": groupings.local}
        )
        .sink("store", keep_nothing, chain=True)
        .topology.output("table", after="left")
        .topology.build()
    )
