"""The frozen graph that leaves: order, chains, groupings, and the trip to a worker."""

from collections.abc import Callable

import pytest
from flows import replay_of
from pyspark import cloudpickle
from topologies import diamond, keep_nothing, reading, unchanged, words

from elastream import Graph, Stream, Topology, groupings
from elastream.errors import TopologyError
from elastream.topology import Kind, Replicas, parse_schema


def test_a_built_topology_is_frozen_and_says_so() -> None:
    topology = reading().sink("store", keep_nothing, after="read").topology
    graph = topology.build()
    late: list[Callable[[], Stream]] = [
        lambda: topology.map("late", unchanged, after="read"),
        lambda: topology.source("more", words()),
        lambda: topology.output("table", after="read"),
    ]
    for declare in late:
        with pytest.raises(TopologyError, match=r"topology 'words' is built and frozen; declare a new Topology"):
            declare()
    assert topology.build() is graph
    assert [operator.name for operator in graph.operators] == ["read", "store"]


def test_a_graph_and_its_parts_cannot_be_changed() -> None:
    graph = reading().sink("store", keep_nothing, after="read").topology.build()
    for part, name in ((graph, "edges"), (graph["store"], "replicas"), (graph.edges[0], "grouping")):
        with pytest.raises(AttributeError):
            setattr(part, name, None)


def test_a_refused_build_leaves_the_topology_open_to_be_mended() -> None:
    topology = reading()
    with pytest.raises(TopologyError, match="go nowhere"):
        topology.build()
    topology.sink("store", keep_nothing, after="read")
    assert topology.build()["store"].kind is Kind.SINK


def test_an_operator_may_be_declared_before_the_one_it_comes_after() -> None:
    graph = (
        reading()
        .sink("store", keep_nothing, after="keep")
        .topology.filter("keep", bool, after="score")
        .topology.map("score", unchanged, after="read", schema="id long, score double")
        .topology.build()
    )
    assert [operator.name for operator in graph.operators] == ["read", "score", "keep", "store"]
    wanted = parse_schema("id long, score double")
    assert {name: graph[name].schema for name in ("score", "keep", "store")} == dict.fromkeys(
        ("score", "keep", "store"), wanted
    )


def test_operators_stand_behind_all_that_they_come_after() -> None:
    graph = diamond()
    place = {operator.name: at for at, operator in enumerate(graph.operators)}
    assert all(place[edge.source] < place[edge.target] for edge in graph.edges)
    assert set(place) == {"read", "clean", "trim", "left", "right", "join", "store", "table"}


def test_a_chain_is_the_head_with_all_that_runs_in_its_task() -> None:
    graph = diamond()
    assert [member.name for member in graph.chain("clean")] == ["clean", "trim"]
    assert [member.name for member in graph.chain("join")] == ["join", "store"]
    assert [member.name for member in graph.chain("left")] == ["left"]


def test_a_chain_may_begin_at_a_source_and_be_long() -> None:
    graph = (
        reading()
        .map("a", unchanged, after="read", chain=True)
        .map("b", unchanged, chain=True)
        .sink("c", keep_nothing, chain=True)
        .topology.build()
    )
    assert [member.name for member in graph.chain("read")] == ["read", "a", "b", "c"]
    assert graph.edges_leaving("read") == ()
    assert graph.served == ()


def test_the_tuples_of_a_chain_leave_over_the_edges_of_its_last_member() -> None:
    graph = diamond()
    assert [(e.source, e.target) for e in graph.edges_leaving("clean")] == [("trim", "left"), ("trim", "right")]
    assert [(e.source, e.target) for e in graph.edges_leaving("left")] == [("left", "join"), ("left", "table")]
    assert graph.edges_leaving("join") == ()


def test_only_operators_with_lanes_are_served() -> None:
    graph = diamond()
    assert {operator.name for operator in graph.served} == {"clean", "left", "right", "join", "table"}
    assert [operator.name for operator in graph.sources] == ["read"]


def test_what_enters_an_operator_is_what_its_predecessors_give() -> None:
    graph = diamond()
    assert graph.input_schema("clean") == parse_schema("id long, word string")
    assert graph.input_schema("trim") == parse_schema("id long, word string")
    assert graph.input_schema("join") == parse_schema("id long, n int")
    assert graph["left"].schema == graph["table"].schema == parse_schema("id long, n int")


def test_replicas_are_one_number_or_a_range_that_begins_at_its_least() -> None:
    graph = diamond()
    assert graph["left"].replicas == Replicas(3, 3, 3)
    assert graph["clean"].replicas == Replicas(1, 4, 2)
    assert reading().sink("s", keep_nothing, after="read", replicas=(2, 5)).topology.build()["s"].replicas == Replicas(
        2, 5, 2
    )


def test_each_predecessor_may_have_its_own_grouping() -> None:
    groups = {edge.source: str(edge.grouping) for edge in diamond().edges_into("join")}
    assert groups == {"left": "all", "right": "local"}


def test_a_graph_knows_its_operators_by_name() -> None:
    graph = diamond()
    assert "left" in graph
    assert "up" not in graph
    assert graph["store"].kind is Kind.SINK
    with pytest.raises(KeyError):
        graph["up"]


def test_a_graph_survives_the_trip_to_a_worker() -> None:
    factor = 3
    graph = (
        Topology("trip")
        .source("read", words("id long"))
        .map(
            "triple",
            lambda row: {"id": row["id"] * factor},
            replicas=(1, 4),
            grouping=groupings.fields("id"),
        )
        .map("same", unchanged, chain=True)
        .output("table")
        .topology.build()
    )
    # Asked before it is packed, so that remembered answers would travel too if they did.
    assert graph["triple"].name == "triple"
    assert len(graph.served) == 2
    arrived: Graph = cloudpickle.loads(cloudpickle.dumps(graph))  # type: ignore[no-untyped-call]
    assert arrived is not graph
    assert str(arrived) == str(graph)
    assert arrived.edges == graph.edges
    assert [(o.name, o.kind, o.schema, o.replicas, o.chained) for o in arrived.operators] == [
        (o.name, o.kind, o.schema, o.replicas, o.chained) for o in graph.operators
    ]
    assert arrived["triple"].function is not None
    assert arrived["triple"].function({"id": 7}) == {"id": 21}
    assert replay_of(arrived).rows(5, 8).column("id").to_pylist() == [5, 6, 7]
    assert [o.name for o in arrived.served] == ["triple", "table"]
