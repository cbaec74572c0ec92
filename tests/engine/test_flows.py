"""Topologies: what goes in comes out, once, through every kind of operator."""

from collections import Counter
from itertools import groupby
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from flows import each_once, files_by_delivery, finish, ids_in, ids_of, numbers, same, wait_for

from elastream import Topology, groupings, sources
from elastream.engine.driver.ports import Tick
from elastream.errors import SettingError
from elastream.testing import LocalEngine
from elastream.workload import constant


def test_every_kind_of_operator_does_what_its_function_says(tmp_path: Path) -> None:
    flow = numbers(1000)
    flow.map(
        "double",
        lambda row: {"id": row["id"], "twice": row["id"] * 2},
        after="in",
        schema="id long, twice long",
        replicas=(1, 4),
        start=3,
    )
    flow.filter("even", lambda row: row["id"] % 2 == 0, after="double", grouping=groupings.fields("id"), replicas=2)
    flow.flat_map(
        "split",
        lambda row: ({"id": row["id"], "word": w} for w in ("a", "b")),
        after="even",
        schema="id long, word string",
        replicas=2,
    )
    flow.batch("upper", _upper, after="split", grouping=groupings.partial_key("word"), replicas=3)
    flow.pandas(
        "length", _length, after="upper", schema="id long, word string, size long", grouping=groupings.local, replicas=2
    )
    flow.output("out", after="length")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        rows = handle.output("out").to_pylist()
        audit = handle.audit()
    assert Counter((r["id"], r["word"], r["size"]) for r in rows) == Counter(
        (n, word, n + 1) for n in range(0, 1000, 2) for word in ("A", "B")
    )
    # 1000 came in, 500 were filtered out, and each of the other 500 became two.
    assert (audit.entered, audit.finished, audit.dropped, audit.queued) == (1500, 1500, 0, 0)
    assert audit.problems == ()


def _upper(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(1, "word", pc.utf8_upper(batch.column("word")))


def _length(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(size=frame["word"].str.len() + frame["id"])


@pytest.mark.parametrize("grouping", ["shuffle", "fields", "partial_key", "global", "local", "direct"])
def test_every_grouping_delivers_each_tuple_once(tmp_path: Path, grouping: str) -> None:
    chosen = getattr(groupings, grouping, None) or getattr(groupings, f"{grouping}_")
    by = chosen("id") if callable(chosen) else chosen
    flow = numbers(500)
    flow.batch("work", same, after="in", grouping=by, replicas=3).output("out")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert ids_of(handle) == each_once(500)


def test_grouping_all_gives_every_replica_every_tuple(tmp_path: Path) -> None:
    flow = numbers(300)
    flow.batch("work", same, after="in", grouping=groupings.all_, replicas=3).output("out")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert ids_of(handle) == Counter(dict.fromkeys(range(300), 3))
        assert handle.audit().problems == ()


def test_a_flow_that_splits_and_joins_keeps_both_halves(tmp_path: Path) -> None:
    flow = numbers(400)
    flow.filter("odd", lambda row: row["id"] % 2, after="in")
    flow.filter("even", lambda row: row["id"] % 2 == 0, after="in")
    flow.batch("join", same, after=["odd", "even"], replicas=2).output("out")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert ids_of(handle) == each_once(400)
        assert handle.audit().problems == ()


def test_chained_operators_run_in_one_task_and_are_counted_each(tmp_path: Path) -> None:
    flow = numbers(600)
    flow.batch("first", same, after="in", chain=True)
    flow.filter("keep", lambda row: row["id"] < 500, after="first", replicas=2)
    flow.batch("second", same, after="keep", chain=True)
    flow.sink("end", files_by_delivery(tmp_path), after="second", chain=True)
    with LocalEngine().start(flow, str(tmp_path / "base")) as handle:
        finish(handle)
        assert ids_in(tmp_path) == each_once(500)
        totals = handle.status.totals
        audit = handle.audit()
    assert {name: totals[name].processed for name in ("in", "first", "keep", "second", "end")} == {
        "in": 600, "first": 600, "keep": 600, "second": 500, "end": 500,
    }  # fmt: skip
    assert {lane.operator for lane in handle.status.lanes} == {"keep"}
    assert (audit.entered, audit.finished, audit.problems) == (600, 600, ())


def test_scaling_out_and_in_while_the_stream_flows_loses_and_doubles_nothing(tmp_path: Path) -> None:
    flow = Topology("scaled")
    flow.source("in", sources.replay(constant(2000, 6)))
    for name, before in (("a", "in"), ("b", "a"), ("c", "b")):
        flow.batch(name, same, after=before, grouping=groupings.fields("id"), replicas=(1, 6), start=2)
    flow.output("out", after="c")
    schedule = {50: 6, 200: 1, 300: 4, 400: 2}
    used: dict[int, set[int]] = {}
    sizes = []

    def at_each_tick(tick: Tick) -> None:
        size = tick.replicas["b"]
        used.setdefault(size, set()).update(r.lane for r in tick.result.receipts if r.operator == "b" and r.processed)
        sizes.append(size)
        for name in "abc":
            if tick.number in schedule:
                handle.scale(name, schedule[tick.number])

    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        handle.subscribe(at_each_tick)
        finish(handle)
        assert ids_of(handle) == each_once(12000)
        assert handle.audit().problems == ()
    assert [size for size, _ in groupby(sizes)] == [2, 6, 1, 4, 2]
    assert used[6] == set(range(6))


def test_a_lane_that_is_switched_off_is_drained(tmp_path: Path) -> None:
    flow = numbers(4000, seconds=0.2)
    flow.map("slow", _slow, after="in", replicas=(1, 4), start=4)
    flow.output("out", after="slow")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        wait_for(lambda: sum(r.queued > 0 for r in handle.observe().operators["slow"].lanes) == 4)
        handle.scale("slow", 1)
        finish(handle)
        assert ids_of(handle) == each_once(4000)


def _slow(row: dict[str, int]) -> dict[str, int]:
    import time

    time.sleep(0.001)
    return row


def test_scaling_what_cannot_be_scaled_is_refused(tmp_path: Path) -> None:
    flow = numbers(10).batch("work", same, after="in", replicas=(1, 4)).output("out")
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        with pytest.raises(SettingError, match=r"operator 'work': replicas must be 1..4, got 5"):
            handle.scale("work", 5)
        with pytest.raises(SettingError, match=r"no operator 'wrok'.*there are work"):
            handle.scale("wrok", 2)
        with pytest.raises(SettingError, match="output 'work': not an output"):
            handle.output("work")


def test_the_disk_holds_what_waits_and_a_few_ticks(tmp_path: Path) -> None:
    flow = Topology("tidy")
    flow.source("in", sources.replay(constant(2000, 15)))
    flow.batch("a", same, after="in", replicas=2).sink("end", lambda batch, delivery: None, replicas=2)
    most = 0
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        while not handle.await_end(0.3):
            most = max(most, len(list(tmp_path.glob("segments/*"))))
        ticks = handle.status.entry
    assert ticks > 40
    # A tick writes at most three segments here; they go a few ticks after their last tuple.
    assert most <= 3 * 16


def test_the_chunks_of_a_work_are_dealt_out_evenly_together(tmp_path: Path) -> None:
    flow = numbers(2000, seconds=0.2)
    flow.map("slow", _slow, after="in", replicas=1)
    flow.batch("next", same, after="slow", replicas=(7, 7))
    flow.output("out", after="next")
    ticks: list[Tick] = []
    with LocalEngine().start(flow, str(tmp_path)) as handle:
        handle.subscribe(ticks.append)
        finish(handle)
    # Chunks of some twenty tuples for seven lanes: those of every work are even to within one.
    sent = [{lane.lane: by["slow"] for lane, by in tick.result.sent.items() if by["slow"]} for tick in ticks]
    given = [lanes for lanes in sent if lanes]
    assert len(given) > 3
    assert all(max(lanes.values()) - min(lanes.values()) <= 1 for lanes in given if len(lanes) == 7)
    assert any(sum(lanes.values()) > 25 for lanes in given)


def _waits(row: dict[str, int]) -> dict[str, int]:
    import time

    time.sleep(0.004)
    if row["id"] % 100 == 99:
        raise ValueError("every hundredth")
    return row


def test_replicas_of_an_operator_that_waits_are_served_side_by_side(tmp_path: Path) -> None:
    folder = tmp_path / "ids"
    folder.mkdir()
    flow = numbers(3000, seconds=0.3)
    flow.map("ask", _waits, after="in", replicas=(1, 6), start=6, waits=True)
    flow.filter("even", lambda row: row["id"] % 2 == 0, after="ask", chain=True, waits=True)
    flow.sink("store", files_by_delivery(folder), after="even", replicas=(1, 3), start=3, waits=True)
    ticks: list[Tick] = []
    with LocalEngine().start(flow, str(tmp_path / "base")) as handle:
        handle.subscribe(ticks.append)
        finish(handle)
        audit, dead = handle.audit(), handle.dead_letters()
    assert ids_in(folder) == Counter(number for number in range(3000) if number % 2 == 0)
    assert (audit.problems, audit.duplicates, audit.queued) == ((), 0, 0)
    assert dead.num_rows == audit.dropped == 30
    # Six replicas wait at the same time, in fewer processes than six: together they are busy for longer than the tick is.
    side = max(sum(r.busy_s for r in t.result.receipts) / (t.ended_s - t.started_s) for t in ticks)
    assert side > 2
