"""Nexmark's queries 5 and 11: events by its rules, and results that are exact through rescales and kills."""

import datetime as dt
import os
import random
import signal
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from flows import finish, replay_of
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as sql
from spikes import hot_workload
from stored import results_of

from elastream import start
from elastream.simulator.profile import load_profile
from elastream.testing import LocalEngine
from elastream.topology import Graph
from elastream.workload import Arrivals, constant, parse_workload
from elastream.workload.replay import with_arrivals
from elastream_lab.apps.nexmark import q5 as nexmark_q5
from elastream_lab.apps.nexmark import q11 as nexmark_q11
from elastream_lab.apps.nexmark.events import ACTIVE, AHEAD, FIRST_ID, RUNNING, Nexmark
from elastream_lab.apps.results.database import stored_rows
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.simulator_plant import SimulatorPlant

QUERIES = {"nexmark-q5": nexmark_q5, "nexmark-q11": nexmark_q11}

Row = tuple[Any, ...]


def hastened(graph: Graph, arrivals: Arrivals) -> Graph:
    """The same events, with the times at which they happened, in less time."""
    return with_arrivals(graph, arrivals)


def bids_of(graph: Graph, count: int) -> list[dict[str, Any]]:
    return [row for row in replay_of(graph).rows(0, count).to_pylist() if row["kind"] == "bid"]


def hot_items(bids: list[dict[str, Any]]) -> list[Row]:
    """The start of a window, an auction with the most bids in it, and how many."""
    windows: defaultdict[float, Counter[int]] = defaultdict(Counter)
    for bid in bids:
        latest = bid["at"].timestamp() // 5 * 5
        for begin in (latest, latest - 5):
            windows[begin][bid["auction"]] += 1
    return sorted((s, a, n) for s, counts in windows.items() for a, n in counts.items() if n == max(counts.values()))


def sessions(bids: list[dict[str, Any]]) -> list[Row]:
    """A bidder, the first and the last moment of a session, and the bids in it."""
    made: defaultdict[int, list[list[float]]] = defaultdict(list)
    for bid in bids:
        at, known = bid["at"].timestamp(), made[bid["person"]]
        if known and at <= known[-1][1]:
            known[-1][1:] = [at + 10, known[-1][2] + 1]
        else:
            known.append([at, at + 10, 1])
    return sorted((bidder, *one) for bidder, known in made.items() for one in known)


def stored(graph: Graph) -> list[Row]:
    """As the recounts have it."""
    rows = stored_rows(results_of(graph))
    assert len({row[0] for row in rows}) == 1
    if graph.name == "nexmark-q5":
        return sorted((seconds(start), auction, bids) for _, start, _, auction, bids in rows)
    return sorted((bidder, seconds(start), seconds(end), bids) for _, bidder, start, end, bids in rows)


def seconds(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()


# -- what comes


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_are_bids() -> None:
    events = pa.table(Nexmark(constant(1000, 60), "auction")(np.arange(60_000))).to_pylist()
    kinds = [event["kind"] for event in events]
    assert kinds[:50] == ["person", *["auction"] * 3, *["bid"] * 46] and kinds == kinds[:50] * 1200
    made = {kind: [e for e in events if e["kind"] == kind] for kind in ("person", "auction", "bid")}
    assert [e["person"] for e in made["person"]] == list(range(FIRST_ID, FIRST_ID + 1200))
    assert [e["auction"] for e in made["auction"]] == list(range(FIRST_ID, FIRST_ID + 3600))
    assert all(e["auction"] is None and e["price"] is None for e in made["person"])
    prices = np.log10([e["price"] for e in made["bid"]])
    assert np.quantile(prices, [0.0, 0.25, 0.5, 0.75, 1.0]) == pytest.approx([2.0, 3.5, 5.0, 6.5, 8.0], abs=0.05)


def test_hot_ones_get_their_share_and_the_others_are_recent() -> None:
    events = pa.table(Nexmark(constant(1000, 60), "auction")(np.arange(50_000, 60_000))).to_pylist()
    bids = [event for event in events if event["kind"] == "bid"]
    newest = {bid["id"]: bid["id"] // 50 * 3 + 2 for bid in bids}
    off = [bid["auction"] - FIRST_ID - newest[bid["id"]] for bid in bids]
    assert -RUNNING <= min(off) < -90 and 5 < max(off) <= AHEAD
    hot = [bid["auction"] - FIRST_ID == newest[bid["id"]] // 100 * 100 for bid in bids]
    assert np.mean(hot) == pytest.approx(0.5 + 0.5 / 111, abs=0.02)
    bidders = [bid["person"] - FIRST_ID - bid["id"] // 50 for bid in bids]
    assert -ACTIVE < min(bidders) < -950 and 5 < max(bidders) <= AHEAD
    hot = [bid["person"] - FIRST_ID == bid["id"] // 50 // 100 * 100 + 1 for bid in bids]
    assert np.mean(hot) == pytest.approx(0.75, abs=0.02)
    sales = [event for event in events if event["kind"] == "auction"]
    hot = [sale["person"] - FIRST_ID == sale["id"] // 50 // 100 * 100 for sale in sales]
    assert np.mean(hot) == pytest.approx(0.75, abs=0.06)


def test_any_part_of_the_events_can_be_made_alone_and_another_seed_makes_others() -> None:
    one, other = (
        Nexmark(parse_workload("constant:per_second=500,seconds=20", seed=seed), "auction") for seed in (3, 4)
    )
    whole = pa.table(one(np.arange(8000)))
    assert whole.slice(4321, 79).equals(pa.table(one(np.arange(4321, 4400))))
    assert pa.table(one(np.array([77, 5]))).equals(whole.take([77, 5]))
    assert one(np.arange(0))["id"].tolist() == []
    assert not pa.table(other(np.arange(8000))).column("auction").equals(whole.column("auction"))
    times = whole.column("at").to_pylist()
    assert times == sorted(times) and (times[-1] - times[0]).total_seconds() == pytest.approx(7999 / 500)


def test_in_a_data_spike_its_hot_keys_get_and_make_their_share_of_the_bids() -> None:
    spiked = Nexmark(hot_workload(share=0.6, hot_keys=1), "auction")
    bids = [row for row in pa.table(spiked(np.arange(30_000, 34_000))).to_pylist() if row["kind"] == "bid"]
    for column in ("auction", "person"):
        key, count = Counter(bid[column] for bid in bids).most_common(1)[0]
        assert key < FIRST_ID + RUNNING and count / len(bids) == pytest.approx(0.6, abs=0.03)


def test_a_simulation_has_as_many_keys_at_a_time_and_a_hot_one_with_its_share() -> None:
    for key, keys, share in (("auction", RUNNING, 0.5), ("person", ACTIVE, 0.75)):
        count, zipf = Nexmark(constant(1, 1), key).skew
        assert count == keys and 1 / np.sum(np.arange(1.0, count + 1) ** -zipf) == pytest.approx(share, abs=0.001)
    assert Nexmark(parse_workload("constant:per_second=1,seconds=1", zipf=1.5), "person").skew == (RUNNING, 1.5)


# -- flows


@pytest.mark.parametrize(("name", "recount"), [("nexmark-q5", hot_items), ("nexmark-q11", sessions)])
def test_results_are_exact_while_replicas_change_and_hosts_are_killed(name: str, recount: Any, tmp_path: Path) -> None:
    app = QUERIES[name].topology(constant(60, 80), database=str(tmp_path / "x.sqlite")).build()
    expected = recount(bids_of(app, 4800))
    chance, kills, early = random.Random(5), 0, 0
    with LocalEngine(processes=True).start(hastened(app, constant(2400, 2)), str(tmp_path / "base")) as handle:
        while not handle.await_end(0.15):
            handle.scale(chance.choice([str(o.name) for o in app.served]), chance.randint(1, 4))
            early = early or handle.totals("store").processed
            hosts = handle.status.hosts
            if kills < 2 and len(hosts) > 1 and handle.totals("count").processed > 1200 * (kills + 1):
                kills += 1
                with suppress(ProcessLookupError):
                    os.kill(hosts[kills % len(hosts)].pid, signal.SIGKILL)
        finish(handle)
        assert handle.audit().problems == () and handle.dead_letters().num_rows == 0
        assert handle.totals("count").late == 0
    assert kills > 0 and 0 < early < len(expected)
    assert len(expected) > 15 and stored(app) == expected


def test_auctions_that_share_the_first_place_are_all_stored(tmp_path: Path) -> None:
    app = nexmark_q5.topology(constant(0.5, 240), database=str(tmp_path / "x.sqlite")).build()
    with LocalEngine(virtual=True).start(app, str(tmp_path / "base")) as handle:
        finish(handle)
    expected = hot_items(bids_of(app, 120))
    assert max(Counter(start for start, _, _ in expected).values()) > 1
    assert stored(app) == expected


@pytest.mark.slow
def test_both_queries_agree_with_a_plain_query_of_the_same_events_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    count, events = 6000, tmp_path / "events.parquet"
    graphs = {
        name: query.topology(constant(60, 100), database=str(tmp_path / f"{name}.sqlite")).build()
        for name, query in QUERIES.items()
    }
    pa.parquet.write_table(pa.Table.from_batches([graphs["nexmark-q5"].sources[0].source.rows(0, count)]), events)
    # One partition: nothing has to be shuffled.
    bids = spark.read.parquet(str(events)).coalesce(1).where("kind = 'bid'")
    counts = bids.groupBy(sql.window("at", "10 seconds", "5 seconds"), "auction").count()
    place = sql.rank().over(Window.partitionBy("window").orderBy(sql.desc("count")))
    most = counts.withColumn("place", place).where("place = 1")
    hottest = most.selectExpr("unix_micros(window.start) / 1e6", "auction", "count")
    by_session = bids.groupBy(sql.session_window("at", "10 seconds").alias("window"), "person").count()
    users = by_session.selectExpr("person", "unix_micros(window.start) / 1e6", "unix_micros(window.end) / 1e6", "count")
    for name, query in (("nexmark-q5", hottest), ("nexmark-q11", users)):
        with start(
            hastened(graphs[name], constant(count, 1)), str(tmp_path / name), spark=spark, benchmark_s=0, policy=None
        ) as handle:
            handle.scale("count", 3)
            finish(handle)
            assert handle.dead_letters().num_rows == 0
        rows = sorted((float(a), *map(float, rest)) for a, *rest in query.collect())
        assert len(rows) > 20 and [tuple(map(float, row)) for row in stored(graphs[name])] == rows


# -- the simulator


@pytest.mark.parametrize(("app", "counted"), [("nexmark-q5", 0.92), ("nexmark-q11", 0.92), ("yahoo", 1 / 3)])
def test_the_profile_that_ships_knows_the_workloads_of_autrascale(app: str, counted: float) -> None:
    workload = "constant:per_second=1000,seconds=30"
    done = SimulatorPlant(load_profile(None)).simulate(
        Scenario(app, app=app, workload=workload, policy="static:replicas=3")
    )
    processed = {name: sum(sample.processed for sample in its) for name, its in done.record.series.operators.items()}
    assert processed["count"] == pytest.approx(30_000 * counted, rel=0.02)
    assert done.events.queued == 0 and processed["store"] > 0
