"""What a user declares wrongly: an error says where, what was expected and how to mend it."""

import re
from itertools import pairwise

import pytest
from topologies import Declare, keep_nothing, message_of, unchanged, words

from elastream import Topology, groupings
from elastream.errors import TopologyError

ERRORS: dict[str, tuple[Declare, tuple[str, ...]]] = {
    "unknown operator, nearly right": (
        lambda t: t.map("score", unchanged, after="raed").sink("store", keep_nothing),
        ("operator 'score'", "after 'raed', which is not declared", "did you mean 'read'?"),
    ),
    "unknown operator, nothing like it": (
        lambda t: t.sink("store", keep_nothing, after="xyzzy"),
        ("operator 'store'", "after 'xyzzy', which is not declared", "declared are 'read', 'store'"),
    ),
    "two operators of one name": (
        lambda t: t.map("a", unchanged, after="read").topology.filter("a", bool, after="read"),
        ("operator 'a'", "two operators of one name", "rename one of them"),
    ),
    "a name that is empty": (
        lambda t: t.sink("", keep_nothing, after="read"),
        ("operator ''", "a name is not empty", "rename it"),
    ),
    "a name with a slash": (
        lambda t: t.sink("a/b", keep_nothing, after="read"),
        ("operator 'a/b'", "no '/'", "rename it"),
    ),
    "no replicas": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=0),
        ("operator 'store'", "replicas must be 1..1024, got 0", "set replicas=(1, 8)"),
    ),
    "too many replicas": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=(1, 1025)),
        ("operator 'store'", "replicas must be 1..1024, got 1025", "set replicas=(1, 8)"),
    ),
    "replicas below zero": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=(-1, 4)),
        ("operator 'store'", "replicas must be 1..1024, got -1", "set replicas=(1, 8)"),
    ),
    "replicas that are no number": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=True),
        ("operator 'store'", "replicas must be 1..1024, got True", "set replicas=(1, 8)"),
    ),
    "replicas in a list": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=[1, 8]),  # type: ignore[arg-type]
        ("operator 'store'", "got [1, 8]", "set replicas=(1, 8)"),
    ),
    "replicas that are three numbers": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=(1, 2, 8)),  # type: ignore[arg-type]
        ("operator 'store'", "replicas", "(1, 2, 8)", "set replicas=(1, 8)"),
    ),
    "replicas of a source": (
        lambda t: t.source("more", words(), replicas=0).topology.sink("store", keep_nothing, after=["read", "more"]),
        ("operator 'more'", "replicas must be 1..1024, got 0", "set replicas="),
    ),
    "replicas that go down": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=(8, 1)),
        ("operator 'store'", "replicas (8, 1) go down", "set replicas=(1, 8)"),
    ),
    "start below the least": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=(2, 4), start=1),
        ("operator 'store'", "start must be 2..4, got 1", "set start=2"),
    ),
    "start above the most": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=(2, 4), start=5),
        ("operator 'store'", "start must be 2..4, got 5", "set start=2"),
    ),
    "start that is text": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=(2, 4), start="3"),  # type: ignore[arg-type]
        ("operator 'store'", "start must be 2..4, got '3'", "set start=2"),
    ),
    "start between two numbers": (
        lambda t: t.sink("store", keep_nothing, after="read", replicas=(2, 4), start=2.5),  # type: ignore[arg-type]
        ("operator 'store'", "start must be 2..4, got 2.5", "set start=2"),
    ),
    "a key column that does not exist": (
        lambda t: t.sink("store", keep_nothing, after="read", grouping=groupings.fields("user")),
        (
            "edge 'read' -> 'store'",
            "fields(user) wants column 'user'",
            "gives id, word",
            "name one of these, or add 'user'",
        ),
    ),
    "a key column that only one of two predecessors was given": (
        lambda t: t.map("a", unchanged, after="read").topology.sink(
            "store", keep_nothing, after=["read", "a"], grouping={"a": groupings.direct("no")}
        ),
        ("edge 'a' -> 'store'", "direct(no) wants column 'no'", "'a' gives id, word", "name one of these"),
    ),
    "fields without a key": (
        lambda t: t.sink("store", keep_nothing, after="read", grouping=groupings.fields()),
        ("edge 'read' -> 'store'", "fields without a key column", "write fields('id')"),
    ),
    "partial key without a key": (
        lambda t: t.sink("store", keep_nothing, after="read", grouping=groupings.partial_key()),
        ("edge 'read' -> 'store'", "partial_key without a key column", "write partial_key('id')"),
    ),
    "a grouping given as text": (
        lambda t: t.sink("store", keep_nothing, after="read", grouping="shuffle"),  # type: ignore[arg-type]
        ("'store'", "grouping", "'shuffle'", "use one of elastream.groupings"),
    ),
    "a grouping that was not called": (
        lambda t: t.sink("store", keep_nothing, after="read", grouping=groupings.fields),  # type: ignore[arg-type]
        ("'store'", "grouping", "function", "use one of elastream.groupings"),
    ),
    "groupings for an operator that is not a predecessor": (
        lambda t: t.sink("store", keep_nothing, after="read", grouping={"raed": groupings.fields("id")}),
        ("'store'", "grouping", "'raed'", "read"),
    ),
    "a sink with a successor": (
        lambda t: t.sink("store", keep_nothing, after="read").map("late", unchanged).sink("end", keep_nothing),
        ("sink 'store'", "has a successor 'late'", "put 'late' after what comes before 'store'"),
    ),
    "an output with a successor": (
        lambda t: t.output("table", after="read").sink("end", keep_nothing),
        ("output 'table'", "has a successor 'end'", "put 'end' after what comes before 'table'"),
    ),
    "an operator that goes nowhere": (
        lambda t: t.sink("store", keep_nothing, after="read").topology.map("score", unchanged, after="read"),
        ("operator 'score'", "its tuples go nowhere", "add a sink or an output after 'score'"),
    ),
    "a source that goes nowhere": (
        lambda t: t,
        ("operator 'read'", "its tuples go nowhere", "add a sink or an output after 'read'"),
    ),
    "predecessors that disagree": (
        lambda t: t.map("score", unchanged, after="read", schema="id long").topology.sink(
            "store", keep_nothing, after=["read", "score"]
        ),
        (
            "operator 'store'",
            "'read' gives id int64, word string",
            "'score' gives id int64",
            "must give the same columns",
        ),
    ),
    "the same predecessor twice": (
        lambda t: t.sink("store", keep_nothing, after=["read", "read"]),
        ("operator 'store'", "'read'", "twice"),
    ),
    "after nothing": (
        lambda t: t.sink("store", keep_nothing, after=[]),
        ("operator 'store'", "comes after nothing", "name one with after='...'"),
    ),
    "chained after two": (
        lambda t: (
            t.map("a", unchanged, after="read")
            .topology.map("b", unchanged, after=["read", "a"], chain=True)
            .sink("end", keep_nothing)
        ),
        ("operator 'b'", "chained after 2 operators", "chain after one"),
    ),
    "chained where the predecessor feeds another": (
        lambda t: (
            t.map("a", unchanged, after="read")
            .map("b", unchanged, chain=True)
            .topology.sink("c", keep_nothing, after="a")
            .topology.sink("d", keep_nothing, after="b")
        ),
        ("operator 'b'", "chained after 'a', which also feeds 'c'", "remove chain=True"),
    ),
    "a sink chained to a source": (
        lambda t: t.sink("store", keep_nothing, after="read", chain=True),
        ("operator 'store'", "a sink cannot be chained to a source", "remove chain=True"),
    ),
    "no predecessor": (
        lambda t: t.map("a", unchanged),
        ("operator 'a'", "comes after nothing", "after='...'"),
    ),
    "a name that is a folder": (
        lambda t: t.output("..", after="read"),
        ("operator '..'", "a name is not empty", "rename it"),
    ),
    "chained with replicas": (
        lambda t: t.map("a", unchanged, after="read", chain=True, replicas=(1, 4)),
        ("operator 'a'", "runs in its predecessor's replicas", "remove grouping, replicas and start"),
    ),
    "chained with a start": (
        lambda t: t.map("a", unchanged, after="read", chain=True, start=1),
        ("operator 'a'", "runs in its predecessor's replicas", "remove grouping, replicas and start"),
    ),
    "chained with a grouping": (
        lambda t: t.map("a", unchanged, after="read", chain=True, grouping=groupings.fields("id")),
        ("operator 'a'", "runs in its predecessor's replicas", "remove grouping, replicas and start"),
    ),
    "a function that is none": (
        lambda t: t.map("score", "lower", after="read"),  # type: ignore[arg-type]
        ("operator 'score'", "expected a function, got str", "pass a def or a lambda"),
    ),
    "a function that was forgotten": (
        lambda t: t.map("score", None, after="read").sink("store", keep_nothing),  # type: ignore[arg-type]
        ("operator 'score'", "expected a function, got NoneType", "pass a def or a lambda"),
    ),
    "a source that is no spec": (
        lambda t: t.source("more", [1, 2, 3]),  # type: ignore[arg-type]
        ("source 'more'", "got list", "write sources.replay(...) or sources.dataframe(...)"),
    ),
    "a predecessor that is no stream": (
        lambda t: t.sink("store", keep_nothing, after=7),  # type: ignore[arg-type]
        ("operator 'store'", "after= takes Streams and names, got int 7"),
    ),
    "a stream of another topology": (
        lambda t: t.sink("store", keep_nothing, after=Topology("other").source("in", words())),
        ("operator 'store'", "'in' is a stream of another topology, 'other'", "declare both in 'words'"),
    ),
    "a stream that is merged with itself": (
        lambda t: t.map("a", unchanged, after="read").sink("store", keep_nothing, after="a"),
        ("operator 'store'", "comes after 'a' twice; name it once"),
    ),
    "the name that every run needs itself": (
        lambda t: t.sink("dead-letters", keep_nothing, after="read"),
        ("operator 'dead-letters'", "rename"),
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_says_where_what_and_how_to_mend(case: str) -> None:
    declare, parts = ERRORS[case]
    message = message_of(declare)
    assert [part for part in parts if part not in message] == [], message


def test_a_topology_without_a_source_says_how_to_begin() -> None:
    with pytest.raises(TopologyError) as caught:
        Topology("empty").build()
    assert str(caught.value) == "topology 'empty': no source; begin with topology.source(name, spec)"


def test_an_operator_after_itself_is_a_cycle() -> None:
    message = message_of(lambda t: t.map("again", unchanged, after="again").sink("end", keep_nothing))
    assert message.startswith("cycle again -> again;")
    assert message.endswith("remove one of these edges")


def test_the_cycle_is_told_in_the_direction_in_which_tuples_would_go() -> None:
    edges = [("c", "a"), ("a", "b"), ("b", "c")]
    message = message_of(
        lambda t: (
            t.map("a", unchanged, after="c")
            .map("b", unchanged)
            .map("c", unchanged)
            .sink("end", keep_nothing)
            .topology.sink("store", keep_nothing, after="read")
        )
    )
    circle = re.fullmatch(r"cycle (.*); tuples would go round for ever: remove one of these edges", message)
    assert circle is not None
    names = circle.group(1).split(" -> ")
    told = list(pairwise(names))
    assert sorted(told) == sorted(edges)
