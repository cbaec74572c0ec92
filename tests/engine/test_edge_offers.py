"""What dataframe operators are offered, without Spark: each tuple once, whatever Spark reads of an offer first."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from elastream import Settings, Topology, sources
from elastream.connectors.query.edges import SparkEdges
from elastream.connectors.query.lane_source import FILE
from elastream.connectors.query.query import EdgeQuery
from elastream.connectors.query.source_progress import SourceProgress
from elastream.connectors.query.task import read_work
from elastream.engine.clock import VirtualClock
from elastream.engine.driver.dispatch.works import Dispatch
from elastream.engine.driver.lifecycle import RunLife
from elastream.engine.driver.ports import EdgeBatch, QueryBatch
from elastream.engine.driver.tables import make_tables
from elastream.errors import RunFailed
from elastream.lanes import Appended, Entry, LedgerState, SchemaId, Slice
from elastream.topology import Graph
from elastream.workload import constant


def graph() -> Graph:
    flow = Topology("frames")
    flow.source("in", sources.replay(constant(100, 10)))
    flow.dataframe("enrich", lambda frame: frame, after="in", schema="id long")
    flow.dataframe("count", lambda frame: frame, after="enrich", schema="id long")
    flow.output("out", after="count")
    return flow.build()


class Offers:
    """The tick's side of the edges: a turn plans, commits and leaves an offer; a batch of Spark's takes some of it."""

    def __init__(self, folder: Path) -> None:
        self._folder, made, self.state = folder, graph(), LedgerState()
        sizes = {"enrich": 1, "count": 1, "out": 1}
        self.state.apply(Entry(0, 0.0, sizes=sizes, schemas={SchemaId("s"): "schema"}))
        tables = make_tables(made, Settings(), self.state, 1.0)
        self.edges = SparkEdges(made, Settings(), tables, SourceProgress(made), str(folder))
        self.edges.open()

    def wait(self, operator: str, rows: int) -> None:
        piece = Slice("h1-000001.arrow", 0, 10, 0, SchemaId("s"), 0, rows)
        self.state.apply(Entry(self.state.entry + 1, 0.0, appended=[Appended(operator, 0, piece)]))

    def turn(self) -> None:
        planned = Dispatch()
        self.edges.plan(planned, 0.0, 0.0)
        if planned.offer >= 0:
            self.state.apply(Entry(self.state.entry + 1, 0.0, given=planned.given, offer=planned.offer))
            self.state.offer = planned.offer
        self.edges.begin()

    @property
    def offered(self) -> dict[str, int]:
        """Rows per operator of the offer that Spark finds."""
        offer = json.loads((self._folder / FILE).read_text())
        works = {name: [read_work(text).work for text in texts] for name, texts in offer["lanes"].items()}
        return {
            name: sum(piece.rows for work in found for lane in work.lanes for piece in lane.slices)
            for name, found in works.items()
        }

    def batch(self, operator: str, rows: int) -> None:
        """Spark has read what it was offered of one operator."""
        self.state.apply(Entry(self.state.entry + 1, 0.0, consumed=[(operator, 0, rows)]))
        self.edges.committed(EdgeBatch([], QueryBatch("q", self.state.entry, offer_read=True)), 0.0)


def test_what_a_batch_did_not_read_of_an_offer_is_not_offered_a_second_time(tmp_path: Path) -> None:
    offers = Offers(tmp_path)
    offers.wait("enrich", 71)
    offers.wait("count", 5)
    offers.turn()
    assert offers.offered == {"enrich": 71, "count": 5}
    offers.batch("count", 5)
    number = offers.state.offer
    offers.wait("count", 9)
    offers.turn()
    assert (offers.state.offer, offers.edges.has_offer) == (number, True), "enrich may be reading it already"
    offers.batch("enrich", 71)
    offers.turn()
    assert offers.state.offer == number + 1
    assert offers.offered == {"count": 9}


def test_a_query_that_is_started_again_finds_what_was_not_read_and_nothing_else(tmp_path: Path) -> None:
    offers = Offers(tmp_path)
    offers.wait("enrich", 71)
    offers.wait("count", 5)
    offers.turn()
    offers.edges.paused = True
    offers.batch("count", 5)
    offers.wait("enrich", 10)
    offers.edges.reopen()
    offers.edges.paused = False
    assert offers.offered == {"enrich": 71}
    number = offers.state.offer
    offers.turn()
    assert (offers.state.offer, offers.offered) == (number, {"enrich": 71}), "it may be reading it already"
    offers.batch("enrich", 71)
    offers.turn()
    assert offers.offered == {"enrich": 10}


@pytest.mark.parametrize("stopped", [True, False])
def test_a_batch_that_spark_begins_while_a_run_is_stopped_does_not_fail_it(stopped: bool) -> None:
    life = RunLife(VirtualClock(), lambda: None)
    life.begun()
    query = EdgeQuery.__new__(EdgeQuery)
    query._life, query._in_batch = life, threading.Lock()
    query._spark = SimpleNamespace(sparkContext=SimpleNamespace(getLocalProperty=lambda name: "q"))  # type: ignore[assignment]
    query._state = SimpleNamespace(query="", batch=-1, reread=[], entry=0)  # type: ignore[assignment]
    query._edges = SimpleNamespace(paused=False)  # type: ignore[assignment]
    query._progress = SimpleNamespace(check_checkpoint=lambda *its: _refuse())  # type: ignore[assignment]
    query._store = None  # type: ignore[assignment]
    if stopped:
        life.stop()
    with pytest.raises(RunFailed):
        query._batch(None, 7)  # type: ignore[arg-type]
    if stopped:
        assert life.take(lambda request: None) == {}
    else:
        with pytest.raises(RunFailed, match="another checkpoint"):
            life.take(lambda request: None)


def _refuse() -> None:
    raise RunFailed("another checkpoint")
