"""What a user declares: the errors that help, the picture, and the frozen graph that leaves."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from elastream import Graph, Topology, groupings, sources, workload
from elastream.errors import TopologyError
from elastream.topology import DUE, Grouping, Kind, Replicas, parse_schema, stored

Declare = Callable[[Topology], Any]


def _same(x: Any) -> Any:
    return x


def _write(batch: pa.RecordBatch, delivery: Any) -> None:
    """A sink that keeps nothing."""


def _words(schema: str = "id long, word string") -> sources.Replay:
    columns = parse_schema(schema)
    return sources.replay(
        workload.constant(10, 1), columns, lambda numbers: {name: numbers.tolist() for name in columns.names}
    )


def _topology() -> Topology:
    return Topology("words").source("read", _words())


def _message(declare: Declare) -> str:
    """What the user is told, at the declaration or at the build."""
    with pytest.raises(TopologyError) as caught:
        topology = _topology()
        declare(topology)
        topology.build()
    return str(caught.value)


ERRORS: dict[str, tuple[Declare, tuple[str, ...]]] = {
    "unknown operator, nearly right": (
        lambda t: t.map("score", _same, after="raed").sink("store", _write, after="score"),
        ("operator 'score'", "after 'raed', which is not declared", "did you mean 'read'?"),
    ),
    "unknown operator, nothing like it": (
        lambda t: t.sink("store", _write, after="xyzzy"),
        ("operator 'store'", "after 'xyzzy', which is not declared", "declared are 'read', 'store'"),
    ),
    "two operators of one name": (
        lambda t: t.map("a", _same, after="read").filter("a", bool, after="read"),
        ("operator 'a'", "two operators of one name", "rename one of them"),
    ),
    "a name that is empty": (
        lambda t: t.sink("", _write, after="read"),
        ("operator ''", "a name is not empty", "rename it"),
    ),
    "a name with a slash": (
        lambda t: t.sink("a/b", _write, after="read"),
        ("operator 'a/b'", "no '/'", "rename it"),
    ),
    "no replicas": (
        lambda t: t.sink("store", _write, after="read", replicas=0),
        ("operator 'store'", "replicas must be 1..1024, got 0", "set replicas=(1, 8)"),
    ),
    "too many replicas": (
        lambda t: t.sink("store", _write, after="read", replicas=(1, 1025)),
        ("operator 'store'", "replicas must be 1..1024, got 1025", "set replicas=(1, 8)"),
    ),
    "replicas below zero": (
        lambda t: t.sink("store", _write, after="read", replicas=(-1, 4)),
        ("operator 'store'", "replicas must be 1..1024, got -1", "set replicas=(1, 8)"),
    ),
    "replicas that are no number": (
        lambda t: t.sink("store", _write, after="read", replicas=True),
        ("operator 'store'", "replicas must be 1..1024, got True", "set replicas=(1, 8)"),
    ),
    "replicas in a list": (
        lambda t: t.sink("store", _write, after="read", replicas=[1, 8]),
        ("operator 'store'", "got [1, 8]", "set replicas=(1, 8)"),
    ),
    "replicas that are three numbers": (
        lambda t: t.sink("store", _write, after="read", replicas=(1, 2, 8)),
        ("operator 'store'", "replicas", "(1, 2, 8)", "set replicas=(1, 8)"),
    ),
    "replicas of a source": (
        lambda t: t.source("more", _words(), replicas=0).sink("store", _write, after=["read", "more"]),
        ("operator 'more'", "replicas must be 1..1024, got 0", "set replicas="),
    ),
    "replicas that go down": (
        lambda t: t.sink("store", _write, after="read", replicas=(8, 1)),
        ("operator 'store'", "replicas (8, 1) go down", "set replicas=(1, 8)"),
    ),
    "start below the least": (
        lambda t: t.sink("store", _write, after="read", replicas=(2, 4), start=1),
        ("operator 'store'", "start must be 2..4, got 1", "set start=2"),
    ),
    "start above the most": (
        lambda t: t.sink("store", _write, after="read", replicas=(2, 4), start=5),
        ("operator 'store'", "start must be 2..4, got 5", "set start=2"),
    ),
    "start that is text": (
        lambda t: t.sink("store", _write, after="read", replicas=(2, 4), start="3"),
        ("operator 'store'", "start must be 2..4, got '3'", "set start=2"),
    ),
    "start between two numbers": (
        lambda t: t.sink("store", _write, after="read", replicas=(2, 4), start=2.5),
        ("operator 'store'", "start must be 2..4, got 2.5", "set start=2"),
    ),
    "a key column that does not exist": (
        lambda t: t.sink("store", _write, after="read", grouping=groupings.fields("user")),
        (
            "edge 'read' -> 'store'",
            "fields(user) wants column 'user'",
            "gives id, word",
            "name one of these, or add 'user'",
        ),
    ),
    "a key column that only one of two predecessors was given": (
        lambda t: t.map("a", _same, after="read").sink(
            "store", _write, after=["read", "a"], grouping={"a": groupings.direct("no")}
        ),
        ("edge 'a' -> 'store'", "direct(no) wants column 'no'", "'a' gives id, word", "name one of these"),
    ),
    "fields without a key": (
        lambda t: t.sink("store", _write, after="read", grouping=groupings.fields()),
        ("edge 'read' -> 'store'", "fields without a key column", "write fields('id')"),
    ),
    "partial key without a key": (
        lambda t: t.sink("store", _write, after="read", grouping=groupings.partial_key()),
        ("edge 'read' -> 'store'", "partial_key without a key column", "write partial_key('id')"),
    ),
    "a grouping nobody knows": (
        lambda t: t.sink("store", _write, after="read", grouping=Grouping("sticky")),
        ("edge 'read' -> 'store'", "no grouping 'sticky'", "use one of elastream.groupings"),
    ),
    "a grouping given as text": (
        lambda t: t.sink("store", _write, after="read", grouping="shuffle"),
        ("'store'", "grouping", "'shuffle'", "use one of elastream.groupings"),
    ),
    "a grouping that was not called": (
        lambda t: t.sink("store", _write, after="read", grouping=groupings.fields),
        ("'store'", "grouping", "function", "use one of elastream.groupings"),
    ),
    "groupings for an operator that is not a predecessor": (
        lambda t: t.sink("store", _write, after="read", grouping={"raed": groupings.fields("id")}),
        ("'store'", "grouping", "'raed'", "read"),
    ),
    "a sink with a successor": (
        lambda t: (
            t.sink("store", _write, after="read").map("late", _same, after="store").sink("end", _write, after="late")
        ),
        ("sink 'store'", "has a successor 'late'", "put 'late' after what comes before 'store'"),
    ),
    "an output with a successor": (
        lambda t: t.output("table", after="read").sink("end", _write, after="table"),
        ("output 'table'", "has a successor 'end'", "put 'end' after what comes before 'table'"),
    ),
    "an operator that goes nowhere": (
        lambda t: t.sink("store", _write, after="read").map("score", _same, after="read"),
        ("operator 'score'", "its tuples go nowhere", "add a sink or an output after 'score'"),
    ),
    "a source that goes nowhere": (
        lambda t: t,
        ("operator 'read'", "its tuples go nowhere", "add a sink or an output after 'read'"),
    ),
    "predecessors that disagree": (
        lambda t: t.map("score", _same, after="read", schema="id long").sink("store", _write, after=["read", "score"]),
        (
            "operator 'store'",
            "'read' gives id int64, word string",
            "'score' gives id int64",
            "must give the same columns",
        ),
    ),
    "the same predecessor twice": (
        lambda t: t.sink("store", _write, after=["read", "read"]),
        ("operator 'store'", "'read'", "twice"),
    ),
    "after nothing": (
        lambda t: t.sink("store", _write, after=[]),
        ("operator 'store'", "comes after nothing", "name one with after='...'"),
    ),
    "chained after two": (
        lambda t: (
            t.map("a", _same, after="read")
            .map("b", _same, after=["read", "a"], chain=True)
            .sink("end", _write, after="b")
        ),
        ("operator 'b'", "chained after 2 operators", "chain after one"),
    ),
    "chained where the predecessor feeds another": (
        lambda t: (
            t.map("a", _same, after="read")
            .map("b", _same, after="a", chain=True)
            .sink("c", _write, after="a")
            .sink("d", _write, after="b")
        ),
        ("operator 'b'", "chained after 'a', which also feeds 'c'", "remove chain=True"),
    ),
    "a sink chained to a source": (
        lambda t: t.sink("store", _write, after="read", chain=True),
        ("operator 'store'", "a sink cannot be chained to a source", "remove chain=True"),
    ),
    "a chained output": (
        lambda t: t.map("a", _same, after="read").output("table", after="a", chain=True),
        ("output 'table'", "an output is a lane to read from", "remove chain=True"),
    ),
    "chained with replicas": (
        lambda t: t.map("a", _same, after="read", chain=True, replicas=(1, 4)),
        ("operator 'a'", "runs in its predecessor's replicas", "remove grouping, replicas and start"),
    ),
    "chained with a start": (
        lambda t: t.map("a", _same, after="read", chain=True, start=1),
        ("operator 'a'", "runs in its predecessor's replicas", "remove grouping, replicas and start"),
    ),
    "chained with a grouping": (
        lambda t: t.map("a", _same, after="read", chain=True, grouping=groupings.fields("id")),
        ("operator 'a'", "runs in its predecessor's replicas", "remove grouping, replicas and start"),
    ),
    "a function that is none": (
        lambda t: t.map("score", "lower", after="read"),
        ("operator 'score'", "expected a function, got str", "pass a def or a lambda"),
    ),
    "a function that was forgotten": (
        lambda t: t.map("score", None, after="read").sink("store", _write, after="score"),
        ("operator 'score'", "expected a function, got NoneType", "pass a def or a lambda"),
    ),
    "a filter with a schema": (
        lambda t: t.filter("keep", bool, after="read", schema="id long"),
        ("operator 'keep'", "a filter does not change the columns", "remove schema"),
    ),
    "a source that is no spec": (
        lambda t: t.source("more", [1, 2, 3]),
        ("source 'more'", "got list", "write sources.replay(...) or sources.dataframe(...)"),
    ),
    "the name that every run needs itself": (
        lambda t: t.sink("dead-letters", _write, after="read"),
        ("operator 'dead-letters'", "rename"),
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_says_where_what_and_how_to_mend(case: str) -> None:
    declare, parts = ERRORS[case]
    message = _message(declare)
    assert [part for part in parts if part not in message] == [], message


def test_a_topology_without_a_source_says_how_to_begin() -> None:
    with pytest.raises(TopologyError) as caught:
        Topology("empty").build()
    assert str(caught.value) == "topology 'empty': no source; begin with topology.source(name, spec)"


def test_an_operator_after_itself_is_a_cycle() -> None:
    message = _message(lambda t: t.map("again", _same, after="again").sink("end", _write, after="again"))
    assert message.startswith("cycle again -> again;")
    assert message.endswith("remove one of these edges")


def test_the_cycle_is_told_in_the_direction_in_which_tuples_would_go() -> None:
    edges = [("c", "a"), ("a", "b"), ("b", "c")]
    message = _message(
        lambda t: (
            t.map("a", _same, after="c")
            .map("b", _same, after="a")
            .map("c", _same, after="b")
            .sink("end", _write, after="c")
            .sink("store", _write, after="read")
        )
    )
    circle = re.fullmatch(r"cycle (.*); tuples would go round for ever: remove one of these edges", message)
    assert circle is not None
    names = circle.group(1).split(" -> ")
    told = list(pairwise(names))
    assert sorted(told) == sorted(edges)


def test_a_built_topology_is_frozen_and_says_so() -> None:
    topology = _topology().sink("store", _write, after="read")
    graph = topology.build()
    for declare in (
        lambda: topology.map("late", _same, after="read"),
        lambda: topology.source("more", _words()),
        lambda: topology.output("table", after="read"),
    ):
        with pytest.raises(TopologyError, match=r"topology 'words' is built and frozen; declare a new Topology"):
            declare()
    assert topology.build() is graph
    assert [operator.name for operator in graph.operators] == ["read", "store"]


def test_a_graph_and_its_parts_cannot_be_changed() -> None:
    graph = _topology().sink("store", _write, after="read").build()
    for part, name in ((graph, "edges"), (graph["store"], "replicas"), (graph.edges[0], "grouping")):
        with pytest.raises(AttributeError):
            setattr(part, name, None)


def test_a_refused_build_leaves_the_topology_open_to_be_mended() -> None:
    topology = _topology()
    with pytest.raises(TopologyError, match="go nowhere"):
        topology.build()
    topology.sink("store", _write, after="read")
    assert topology.build()["store"].kind is Kind.SINK


def test_an_operator_may_be_declared_before_the_one_it_comes_after() -> None:
    graph = (
        _topology()
        .sink("store", _write, after="keep")
        .filter("keep", bool, after="score")
        .map("score", _same, after="read", schema="id long, score double")
        .build()
    )
    assert [operator.name for operator in graph.operators] == ["read", "score", "keep", "store"]
    wanted = parse_schema("id long, score double")
    assert {name: graph[name].schema for name in ("score", "keep", "store")} == dict.fromkeys(
        ("score", "keep", "store"), wanted
    )


# -- schemas


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("id long", pa.schema([("id", pa.int64())])),
        (
            "a string, b binary, c boolean, d byte, e tinyint, f short, g smallint, h int, i integer, j long, k bigint",
            pa.schema(
                [
                    ("a", pa.string()),
                    ("b", pa.binary()),
                    ("c", pa.bool_()),
                    ("d", pa.int8()),
                    ("e", pa.int8()),
                    ("f", pa.int16()),
                    ("g", pa.int16()),
                    ("h", pa.int32()),
                    ("i", pa.int32()),
                    ("j", pa.int64()),
                    ("k", pa.int64()),
                ]
            ),
        ),
        (
            "x FLOAT,y Double , d date\n, t timestamp",
            pa.schema(
                [("x", pa.float32()), ("y", pa.float64()), ("d", pa.date32()), ("t", pa.timestamp("us", tz="UTC"))]
            ),
        ),
        ("price decimal(12, 2)", pa.schema([("price", pa.decimal128(12, 2))])),
        ("words array<string>", pa.schema([("words", pa.list_(pa.string()))])),
        ("deep array<array<array<int>>>", pa.schema([("deep", pa.list_(pa.list_(pa.list_(pa.int32()))))])),
        (
            "m map<string, array<struct<a: int, b: map<long, decimal(5,1)>>>>, last boolean",
            pa.schema(
                [
                    (
                        "m",
                        pa.map_(
                            pa.string(),
                            pa.list_(pa.struct([("a", pa.int32()), ("b", pa.map_(pa.int64(), pa.decimal128(5, 1)))])),
                        ),
                    ),
                    ("last", pa.bool_()),
                ]
            ),
        ),
    ],
)
def test_a_declaration_becomes_the_arrow_schema_it_says(text: str, wanted: pa.Schema) -> None:
    assert parse_schema(text) == wanted


def test_an_arrow_schema_stays_what_it_is() -> None:
    schema = pa.schema([("id", pa.uint8()), ("t", pa.time64("ns"))])
    assert parse_schema(schema) is schema


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "it ends too early"),
        ("id", "it ends too early"),
        ("id long,", "it ends too early"),
        ("id lang", "got 'lang'"),
        ("id long name string", "a comma or the end"),
        ("1 long", "a column name"),
        ("`my id` long", "letters, digits"),
        ("words array string", "'<'"),
        ("words array<string", "it ends too early"),
        ("m map<string>", "','"),
        ("s struct<a int>", "':'"),
        ("price decimal", "it ends too early"),
        ("price decimal(a, 2)", "a number"),
        ("price decimal(10, 2", "it ends too early"),
        ("price decimal(40, 2)", "38"),
        ("id long)", "a comma or the end"),
    ],
)
def test_a_wrong_declaration_is_shown_with_what_was_expected_there(text: str, wanted: str) -> None:
    message = _message(lambda t: t.map("score", _same, after="read", schema=text))
    assert message.startswith(f"schema {text!r}: ")
    assert wanted in message
    assert message.endswith("write it as in 'id long, name string'")


def test_a_schema_that_is_neither_text_nor_arrow_is_refused() -> None:
    message = _message(lambda t: t.map("score", _same, after="read", schema=["id"]))
    assert "['id']" in message
    assert "'id long, name string'" in message


@pytest.mark.parametrize(
    "declared", ["id long, word string, id int", pa.schema([("id", pa.int8()), ("id", pa.int8())])]
)
def test_a_column_declared_twice_is_refused(declared: str | pa.Schema) -> None:
    message = _message(lambda t: t.map("score", _same, after="read", schema=declared))
    assert "each column once; rename the second one" in message


@pytest.mark.parametrize("declared", ["id long, _due long", pa.schema([("_due", pa.int8())])])
def test_the_column_of_due_times_is_reserved(declared: str | pa.Schema) -> None:
    message = _message(lambda t: t.map("score", _same, after="read", schema=declared))
    assert "'_due' is kept for the time a tuple was due; rename the column" in message


def test_tuples_wait_with_their_due_time_behind_the_declared_columns() -> None:
    assert stored(parse_schema("id long")) == pa.schema([("id", pa.int64()), (DUE, pa.timestamp("us", tz="UTC"))])


# -- the graph


def _diamond() -> Graph:
    """read -> clean (-> trim, chained) -> left and right -> join -> store; left also feeds a table."""
    return (
        Topology("diamond")
        .source("read", _words(), replicas=2)
        .map("clean", _same, after="read", replicas=(1, 4), start=2, grouping=groupings.fields("id"))
        .map("trim", _same, after="clean", schema="id long, n int", chain=True)
        .filter("left", bool, after="trim", replicas=3, grouping=groupings.partial_key("id", "n"))
        .filter("right", bool, after="trim")
        .map("join", _same, after=["left", "right"], grouping={"left": groupings.all_, "right": groupings.local})
        .sink("store", _write, after="join", chain=True)
        .output("table", after="left", grouping=groupings.global_)
        .build()
    )


def test_operators_stand_behind_all_that_they_come_after() -> None:
    graph = _diamond()
    place = {operator.name: at for at, operator in enumerate(graph.operators)}
    assert all(place[edge.source] < place[edge.target] for edge in graph.edges)
    assert set(place) == {"read", "clean", "trim", "left", "right", "join", "store", "table"}


def test_a_chain_is_the_head_with_all_that_runs_in_its_task() -> None:
    graph = _diamond()
    assert [member.name for member in graph.chain("clean")] == ["clean", "trim"]
    assert [member.name for member in graph.chain("join")] == ["join", "store"]
    assert [member.name for member in graph.chain("left")] == ["left"]


def test_a_chain_may_begin_at_a_source_and_be_long() -> None:
    graph = (
        _topology()
        .map("a", _same, after="read", chain=True)
        .map("b", _same, after="a", chain=True)
        .sink("c", _write, after="b", chain=True)
        .build()
    )
    assert [member.name for member in graph.chain("read")] == ["read", "a", "b", "c"]
    assert graph.edges_leaving("read") == ()
    assert graph.served == ()


def test_the_tuples_of_a_chain_leave_over_the_edges_of_its_last_member() -> None:
    graph = _diamond()
    assert [(e.source, e.target) for e in graph.edges_leaving("clean")] == [("trim", "left"), ("trim", "right")]
    assert [(e.source, e.target) for e in graph.edges_leaving("left")] == [("left", "join"), ("left", "table")]
    assert graph.edges_leaving("join") == ()


def test_only_operators_with_lanes_are_served() -> None:
    graph = _diamond()
    assert {operator.name for operator in graph.served} == {"clean", "left", "right", "join", "table"}
    assert [operator.name for operator in graph.sources] == ["read"]


def test_what_enters_an_operator_is_what_its_predecessors_give() -> None:
    graph = _diamond()
    assert graph.input_schema("clean") == parse_schema("id long, word string")
    assert graph.input_schema("trim") == parse_schema("id long, word string")
    assert graph.input_schema("join") == parse_schema("id long, n int")
    assert graph["left"].schema == graph["table"].schema == parse_schema("id long, n int")


def test_replicas_are_one_number_or_a_range_that_begins_at_its_least() -> None:
    graph = _diamond()
    assert graph["left"].replicas == Replicas(3, 3, 3)
    assert graph["clean"].replicas == Replicas(1, 4, 2)
    assert _topology().sink("s", _write, after="read", replicas=(2, 5)).build()["s"].replicas == Replicas(2, 5, 2)


def test_each_predecessor_may_have_its_own_grouping() -> None:
    groups = {edge.source: str(edge.grouping) for edge in _diamond().edges_into("join")}
    assert groups == {"left": "all", "right": "local"}


def test_a_graph_knows_its_operators_by_name() -> None:
    graph = _diamond()
    assert "left" in graph
    assert "up" not in graph
    assert graph["store"].kind is Kind.SINK
    with pytest.raises(KeyError):
        graph["up"]


# -- pictures


def test_a_printed_topology_shows_operators_replicas_and_groupings() -> None:
    topology = (
        Topology("tweets")
        .source("read", _words())
        .map("score", _same, after="read", replicas=(1, 8), start=2, grouping=groupings.fields("id", "word"))
        .map("trim", _same, after="score", chain=True)
        .sink("store", _write, after="trim", replicas=3)
    )
    assert str(topology).splitlines() == [
        "tweets",
        "  read x 1              source",
        "  └─ score x 2 of 1..8  map; fields(id, word) of read",
        "     └─ trim            map, chained",
        "        └─ store x 3    sink; shuffle of trim",
    ]


def test_a_drawing_names_every_predecessor_with_its_grouping() -> None:
    (line,) = [line for line in str(_diamond()).splitlines() if "join" in line.split("  map")[0]]
    assert "all of left" in line
    assert "local of right" in line


def _texts(html: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(html).iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_for_notebooks_is_well_formed_and_shows_everything() -> None:
    graph = _diamond()
    svg = ET.fromstring(graph._repr_html_())
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}rect"))) == len(graph.operators)
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}line"))) == len(graph.edges)
    texts = _texts(graph._repr_html_())
    assert {operator.name for operator in graph.operators} <= set(texts)
    assert {"map x 2 of 1..4", "filter x 3", "partial_key(id, n)", "fields(id)", "global"} <= set(texts)


def test_names_that_look_like_markup_do_not_break_the_picture() -> None:
    name = "<b>&\"'é</b>".replace("/", "|")
    topology = Topology("<t>").source(name, _words()).sink("a & b", _write, after=name)
    assert {name, "a & b"} <= set(_texts(topology._repr_html_()))


def test_no_two_boxes_of_a_picture_lie_on_each_other() -> None:
    boxes = [
        (int(rect.attrib["x"]), int(rect.attrib["y"]))
        for rect in ET.fromstring(_diamond()._repr_html_()).iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert len(set(boxes)) == len(boxes)


# -- shipping


def test_a_graph_survives_the_trip_to_a_worker() -> None:
    factor = 3
    graph = (
        Topology("trip")
        .source("read", _words("id long"))
        .map(
            "triple",
            lambda row: {"id": row["id"] * factor},
            after="read",
            replicas=(1, 4),
            grouping=groupings.fields("id"),
        )
        .map("same", _same, after="triple", chain=True)
        .output("table", after="same")
        .build()
    )
    # Asked before it is packed, so that remembered answers would travel too if they did.
    assert graph["triple"].name == "triple"
    assert len(graph.served) == 2
    arrived: Graph = cloudpickle.loads(cloudpickle.dumps(graph))
    assert arrived is not graph
    assert str(arrived) == str(graph)
    assert arrived.edges == graph.edges
    assert [(o.name, o.kind, o.schema, o.replicas, o.chained) for o in arrived.operators] == [
        (o.name, o.kind, o.schema, o.replicas, o.chained) for o in graph.operators
    ]
    assert arrived["triple"].function is not None
    assert arrived["triple"].function({"id": 7}) == {"id": 21}
    assert arrived["read"].source.rows(5, 8).column("id").to_pylist() == [5, 6, 7]
    assert [o.name for o in arrived.served] == ["triple", "table"]
