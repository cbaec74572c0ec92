"""Streams as values: operators are declared behind them, merged, keyed, and given to a run."""

import inspect
from dataclasses import FrozenInstanceError, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from topologies import keep_nothing, unchanged, words

from elastream import Graph, Stream, Topology, groupings
from elastream.errors import TopologyError
from elastream.testing import LocalEngine
from elastream.topology import KeyedStream, Kind, graph_of, parse_schema
from elastream.topology.stream import OperatorMethods


def edges(graph: Graph) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in graph.edges}


def test_a_line_of_operators_reads_from_left_to_right() -> None:
    app = Topology("line")
    read = app.source("read", words())
    read.map("a", unchanged).filter("b", bool).sink("store", keep_nothing)
    assert edges(app.build()) == {("read", "a"), ("a", "b"), ("b", "store")}


def test_every_kind_of_operator_is_declared_behind_a_stream() -> None:
    app = Topology("all")
    read = app.source("read", words())
    for name in ("map", "flat_map", "filter", "batch", "pandas", "dataframe"):
        getattr(read, name)(name, unchanged).output(f"out-{name}")
    read.sink("sink", keep_nothing)
    by_word = read.key_by("word")
    for name in ("rows", "arrow", "pandas"):
        by_word.process(f"keyed-{name}", unchanged, state="n long", mode=name).output(f"out-{name}-keyed")  # type: ignore[arg-type]
    graph = app.build()
    assert {
        str(graph[name].kind) for name in ("map", "flat_map", "filter", "batch", "pandas", "dataframe", "sink")
    } == {*("map", "flat_map", "filter", "batch", "pandas", "dataframe", "sink")}
    kinds = [graph[f"keyed-{mode}"].kind for mode in ("rows", "arrow", "pandas")]
    assert kinds == [Kind.KEYED, Kind.KEYED_BATCH, Kind.KEYED_PANDAS]
    assert all(edge.source == "read" for name in ("map", "sink", "keyed-arrow") for edge in graph.edges_into(name))


def test_after_merges_streams_whether_given_as_streams_or_by_name() -> None:
    app = Topology("merged")
    one, two, three = (app.source(name, words()) for name in ("one", "two", "three"))
    one.map("behind a stream", unchanged, after=[two, "three"]).output("a")
    app.map("in the topology", unchanged, after=[one, "two", three]).output("b")
    one.key_by("word", after=two).process("keyed", unchanged, state="n long").output("c")
    graph = app.build()
    assert [edge.source for edge in graph.edges_into("behind a stream")] == ["one", "two", "three"]
    assert [edge.source for edge in graph.edges_into("in the topology")] == ["one", "two", "three"]
    assert [edge.source for edge in graph.edges_into("keyed")] == ["one", "two"]


def test_each_merged_stream_may_have_its_own_grouping() -> None:
    app = Topology("merged")
    one, two = app.source("one", words()), app.source("two", words())
    one.map("m", unchanged, after=two, grouping={one: groupings.fields("id"), "two": groupings.global_}).output("out")
    assert [str(edge.grouping) for edge in app.build().edges_into("m")] == ["fields(id)", "global"]


def test_nothing_comes_behind_a_sink_and_that_is_said_at_once() -> None:
    stored = Topology("t").source("read", words()).sink("store", keep_nothing)
    with pytest.raises(TopologyError, match="sink 'store': has a successor 'late'; put 'late' after what comes before"):
        stored.map("late", unchanged)


def test_a_stream_cannot_be_changed_and_is_equal_to_another_handle_of_its_operator() -> None:
    app = Topology("t")
    read = app.source("read", words())
    with pytest.raises(FrozenInstanceError):
        read.name = "other"  # type: ignore[misc]
    assert read == Stream(app, "read") and repr(read) == "Stream(name='read')"


def test_a_stream_stands_for_its_topology_when_an_application_is_started(tmp_path: Path) -> None:
    out = Topology("t").source("read", words("id long")).output("out")
    assert graph_of(out) is out.topology.build() is graph_of(out.topology)
    with LocalEngine(virtual=True).start(out, str(tmp_path)) as handle:
        assert handle.await_end(30)
        assert sorted(handle.output("out").column("id").to_pylist()) == list(range(10))


def test_redirected_keys_are_said_once() -> None:
    app = Topology("t")
    read = app.source("read", words())
    read.key_by("word", redirect=True).process("a", unchanged, state="n long").output("x")
    read.key_by("id", "word").process("b", unchanged, state="n long").output("y")
    assert [str(app.build().edges_into(name)[0].grouping) for name in ("a", "b")] == [
        "redirection(word)",
        "fields(id, word)",
    ]


@dataclass
class Visits:
    """The state of a user."""

    n: int = 0
    pages: list[str] = field(default_factory=list)
    last: str | None = None


def test_a_dataclass_is_the_schema_and_the_initial_values_of_a_state(tmp_path: Path) -> None:
    def visit(user: str, rows: list[dict[str, Any]], state: Any) -> Any:
        state.n += len(rows)
        state.pages = [*state.pages, *(str(row["id"]) for row in rows)]
        assert state.last is None or state.last == state.pages[-len(rows) - 1]
        state.last = state.pages[-1]
        return rows

    app = Topology("t")
    app.source("read", words("id long")).key_by("id").process("visits", visit, state=Visits).output("out")
    keyed = app.build()["visits"].keyed
    assert keyed is not None and keyed.schema == parse_schema("n long, pages array<string>, last string")
    assert keyed.initial == {"n": 0, "pages": [], "last": None}
    handle = LocalEngine(virtual=True).run(app, str(tmp_path))
    rows = sorted(handle.state("visits").to_pylist(), key=lambda row: row["id"])
    assert [(row["n"], row["pages"], row["last"]) for row in rows] == [(1, [str(n)], str(n)) for n in range(10)]


def test_a_dataclass_with_initial_values_given_twice_is_refused() -> None:
    read = Topology("t").source("read", words())
    with pytest.raises(TopologyError, match="state Visits has initial values of its own; remove initial="):
        read.key_by("id").process("visits", unchanged, state=Visits, initial={"n": 1})


@pytest.mark.parametrize(
    "method",
    [
        *(getattr(OperatorMethods, name) for name in ("map", "flat_map", "filter", "batch", "pandas", "dataframe")),
        *(OperatorMethods.sink, OperatorMethods.output, KeyedStream.process, KeyedStream.window),
    ],
)
def test_help_explains_every_option(method: Any) -> None:
    text = inspect.getdoc(method) or ""
    options = [name for name, p in inspect.signature(method).parameters.items() if p.kind is p.KEYWORD_ONLY]
    explained = {line.split()[0] for line in text.partition("Options:")[2].splitlines() if line.strip()}
    missing = [option for option in options if option not in explained and f"{option}=" not in text]
    assert options and missing == []
