"""Topics as sources, on a real broker: from where to where, how much per tick, how far behind, and what is not JSON."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flows import finish, same, wait_for
from kafka_broker import new_topic, put, put_ids, records
from pyspark.sql import SparkSession

from elastream import ErrorSettings, Settings, Topology, sources, start
from elastream.engine.driver.ports import Tick
from elastream.errors import OperatorFailed
from elastream.testing.broker import Broker


def test_a_run_reads_from_its_start_to_its_end_and_a_restart_does_not_move_them(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came = new_topic(spark, broker, 2)
    rows = spark.range(0, 100).selectExpr("cast(id as string) as value", "cast(id % 2 as int) as partition")
    put(broker.servers, came, rows.coalesce(1).sortWithinPartitions("id"))

    def flow() -> Topology:
        end = {0: 40, 1: 45}
        source = sources.kafka(
            broker.servers, came, value="string", start={0: 10}, end=end, keep=("partition", "offset")
        )
        return Topology("some").source("in", source).batch("work", same).output("out").topology

    with start(flow(), str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)
        found = handle.output("out").to_pylist()
    assert Counter((row["partition"], row["offset"]) for row in found) == Counter(
        [(0, n) for n in range(10, 40)] + [(1, n) for n in range(45)]
    )
    assert all(int(row["value"]) == row["offset"] * 2 + row["partition"] for row in found)
    with start(flow(), str(tmp_path), spark=spark, policy=None) as again:
        finish(again)
        assert again.audit().entered == 75


def test_a_source_can_begin_at_a_time_and_tuples_are_due_at_their_records_time(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came = new_topic(spark, broker, 1)
    put_ids(spark, broker.servers, came, 0, 50)
    newest = records(spark, broker.servers, came).agg({"timestamp": "max"}).first()
    assert newest is not None
    late = newest[0].astimezone(UTC)
    put_ids(spark, broker.servers, came, 50, 80)
    assert records(spark, broker.servers, came).where(f"timestamp > '{late.isoformat()}'").count() == 30
    after = datetime.fromtimestamp(late.timestamp() + 0.001, UTC)
    flow = Topology("late")
    flow.source("in", sources.kafka(broker.servers, came, "id long", start=after, end="latest"))
    flow.batch("work", same, after="in").output("out")
    ticks: list[Tick] = []
    with start(flow, str(tmp_path), spark=spark, policy=None) as handle:
        handle.subscribe(ticks.append)
        finish(handle)
        rows = handle.output("out").to_pylist()
    assert Counter(row["id"] for row in rows) == Counter(range(50, 80))
    # The oldest has waited in the topic since before the run was started.
    waited_s = max(tick.result.latencies.max_s for tick in ticks)
    oldest = min(row["timestamp"] for row in rows).timestamp()
    assert waited_s == pytest.approx(ticks[-1].ended_s - oldest, abs=3.0)


def test_intake_is_bounded_in_every_tick_and_what_is_behind_waits_in_front_of_the_first_operator(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came = new_topic(spark, broker)
    put_ids(spark, broker.servers, came, 0, 2000)
    flow = Topology("slow")
    flow.source("in", sources.kafka(broker.servers, came, "id long", end="latest", most_per_tick=60))
    flow.batch("work", same, after="in", replicas=2).output("out")
    seen: list[Any] = []
    brought: list[float] = []

    def at_each_tick(tick: Tick) -> None:
        brought.append(tick.counts("in").processed)
        seen.append(handle.observe(0.0).operators["in"])

    with start(flow, str(tmp_path), spark=spark, policy="psps", td_s=1.0, benchmark_s=0) as handle:
        handle.subscribe(at_each_tick)
        decided: list[Any] = []
        handle.on_decision(decided.append)
        finish(handle)
    # Spark shares the bound out among partitions and rounds up.
    assert 0 < max(brought) <= 63 and sum(brought) == 2000
    behind = next(source for source in seen if source.lag)
    assert set(behind.lag) == {f"{came}-{partition}" for partition in range(3)}
    for source in seen:
        assert source.queued <= sum(source.lag.values())
    exact = [source.queued for source in seen if source.lag]
    assert exact[0] > 1700 and exact[-1] == 0 and exact == sorted(exact, reverse=True)
    waited = [want for entry in decided if entry.proposal for want in entry.proposal.wants if want.operator == "work"]
    first = next(entry for entry in decided if entry.observation.operators["work"].service_seconds)
    unread = first.observation.operators["in"].queued
    assert unread > 500 and f"and {unread + first.observation.operators['work'].queued} wait" in waited[0].reason


def test_each_of_several_sources_has_its_own_lag(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    one, two = new_topic(spark, broker, 1), new_topic(spark, broker, 1)
    put_ids(spark, broker.servers, one, 0, 40)
    put_ids(spark, broker.servers, two, 0, 60)
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load().selectExpr("value as id")
    flow = Topology("three")
    flow.source("one", sources.kafka(broker.servers, one, "id long", keep=(), most_per_tick=2))
    flow.source("rate", sources.dataframe(rate))
    flow.source("two", sources.kafka(broker.servers, two, "id long", keep=(), most_per_tick=2))
    flow.batch("work", same, after=["one", "rate", "two"]).output("out")
    seen: list[Any] = []
    with start(flow, str(tmp_path), spark=spark, policy=None) as handle:
        handle.subscribe(lambda tick: seen.append((tick, handle.observe(0.0).operators)))
        wait_for(lambda: len(seen) > 5)
    tick, operators = next((tick, its) for tick, its in seen if its["one"].lag)
    read = sum(earlier.counts("one").processed for earlier, _ in seen if earlier.number <= tick.number)
    assert operators["rate"].lag == {} and set(operators["one"].lag) == {f"{one}-0"}
    assert operators["one"].queued == 40 - read and operators["two"].queued == 60 - read
    assert operators["two"].lag == {f"{two}-0": operators["two"].queued + 2}


def test_a_value_that_is_not_the_json_it_should_be_goes_to_the_dead_letters(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came = new_topic(spark, broker, 1)
    values = [('{"id": 1}',), ("no json",), ('{"id": 2}',), ('{"id": "three"}',), (None,), (" ",)]
    put(broker.servers, came, spark.createDataFrame(values, "value string"))
    flow = Topology("bad")
    flow.source("in", sources.kafka(broker.servers, came, "id long", end="latest"))
    flow.batch("work", same, after="in").output("out")
    graph = flow.build()
    with start(graph, str(tmp_path / "kept"), spark=spark, policy=None) as handle:
        finish(handle)
        assert sorted(handle.output("out").column("id").to_pylist()) == [1, 2]
        dead = handle.dead_letters().to_pylist()
        audit = handle.audit()
    assert sorted(json.loads(row["row"])["text"] for row in dead) == ["", " ", "no json", '{"id": "three"}']
    assert {row["operator"] for row in dead} == {"in"}
    assert (audit.entered, audit.finished, audit.dropped, audit.problems) == (6, 2, 4, ())
    stopping = Settings(errors=ErrorSettings(on_error="stop"))
    with (
        pytest.raises(OperatorFailed, match=r"operator 'in'.*could not read it"),
        start(graph, str(tmp_path / "stopped"), spark=spark, settings=stopping, policy=None) as handle,
    ):
        finish(handle)
