"""Kafka at both ends, on a real broker: what is in the topic goes through the operators and is in the other topic, once."""

import json
import signal
import subprocess
import sys
import uuid
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from flows import each_once, finish, said_by_example, same, wait_for
from kafka_broker import create_topic, put, put_ids, records
from pyspark.sql import DataFrame, SparkSession

from elastream import Settings, Topology, kafka, run, sinks, sources
from elastream.bench.broker import Broker
from elastream.engine.edges.kafka_admin import kafka_admin
from elastream.engine.edges.spark_sink import Write
from elastream.engine.spark.jars import CACHE
from elastream.engine.tick.ports import Tick
from elastream.errors import OperatorFailed, SettingError, TopologyError

HERE = Path(__file__).parent


def topic(spark: SparkSession, broker: Broker, partitions: int = 3) -> str:
    return create_topic(spark, broker.servers, f"t-{uuid.uuid4().hex[:8]}", partitions)


def ids_in_topic(rows: DataFrame) -> Counter[int]:
    return Counter(json.loads(bytes(row.value))["id"] for row in rows.select("value").collect())


def test_records_keep_their_keys_headers_and_times_from_topic_to_topic(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came, left = topic(spark, broker), topic(spark, broker, 2)
    put_ids(spark, broker.servers, came, 0, 900)
    flow = Topology("copy").source("in", sources.kafka(broker.servers, came, "id long", end="latest"))
    flow.map("double", lambda row: {**row, "id": row["id"] * 2}, after="in", replicas=2)
    flow.sink("out", sinks.kafka(broker.servers, left), after="double", replicas=2)
    with run(flow, str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)
        audit = handle.audit()
    assert (audit.entered, audit.finished, audit.dropped, audit.queued) == (900, 900, 0, 0)
    assert (audit.duplicates, audit.problems) == (0, ())
    times = {bytes(row.key): row.timestamp for row in records(spark, broker.servers, came).collect()}
    found = kafka.once(records(spark, broker.servers, left)).collect()
    assert len(found) == 900
    for row in found:
        number = int(bytes(row.key).decode().removeprefix("k-"))
        assert json.loads(bytes(row.value)) == {"id": number * 2}
        assert [(h.key, bytes(h.value)) for h in row.headers if h.key == "from"] == [("from", str(number).encode())]
        assert row.timestamp == times[bytes(row.key)]


def test_a_run_reads_from_its_start_to_its_end_and_a_restart_does_not_move_them(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came = topic(spark, broker, 2)
    rows = spark.range(0, 100).selectExpr("cast(id as string) as value", "cast(id % 2 as int) as partition")
    put(broker.servers, came, rows.coalesce(1).sortWithinPartitions("id"))

    def flow() -> Topology:
        end = {0: 40, 1: 45}
        source = sources.kafka(
            broker.servers, came, value="string", start={0: 10}, end=end, keep=("partition", "offset")
        )
        return Topology("some").source("in", source).batch("work", same, after="in").output("out", after="work")

    with run(flow(), str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)
        found = handle.output("out").to_pylist()
    assert Counter((row["partition"], row["offset"]) for row in found) == Counter(
        [(0, n) for n in range(10, 40)] + [(1, n) for n in range(45)]
    )
    assert all(int(row["value"]) == row["offset"] * 2 + row["partition"] for row in found)
    with run(flow(), str(tmp_path), spark=spark, policy=None) as again:
        finish(again)
        assert again.audit().entered == 75


def test_a_source_can_begin_at_a_time_and_tuples_are_due_at_their_records_time(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came = topic(spark, broker, 1)
    put_ids(spark, broker.servers, came, 0, 50)
    late = records(spark, broker.servers, came).agg({"timestamp": "max"}).first()[0].astimezone(UTC)
    put_ids(spark, broker.servers, came, 50, 80)
    assert records(spark, broker.servers, came).where(f"timestamp > '{late.isoformat()}'").count() == 30
    after = datetime.fromtimestamp(late.timestamp() + 0.001, UTC)
    flow = Topology("late").source("in", sources.kafka(broker.servers, came, "id long", start=after, end="latest"))
    flow.batch("work", same, after="in").output("out", after="work")
    ticks: list[Tick] = []
    with run(flow, str(tmp_path), spark=spark, policy=None) as handle:
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
    came = topic(spark, broker)
    put_ids(spark, broker.servers, came, 0, 2000)
    flow = Topology("slow").source("in", sources.kafka(broker.servers, came, "id long", end="latest", most_per_tick=60))
    flow.batch("work", same, after="in", replicas=2).output("out", after="work")
    seen: list[Any] = []
    brought: list[float] = []

    def at_each_tick(tick: Tick) -> None:
        brought.append(tick.counts("in").processed)
        seen.append(handle.observe(0.0).operators["in"])

    with run(flow, str(tmp_path), spark=spark, policy="psps", td_s=1.0, benchmark_s=0) as handle:
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
    one, two = topic(spark, broker, 1), topic(spark, broker, 1)
    put_ids(spark, broker.servers, one, 0, 40)
    put_ids(spark, broker.servers, two, 0, 60)
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load().selectExpr("value as id")
    flow = Topology("three")
    flow.source("one", sources.kafka(broker.servers, one, "id long", keep=(), most_per_tick=2))
    flow.source("rate", sources.dataframe(rate))
    flow.source("two", sources.kafka(broker.servers, two, "id long", keep=(), most_per_tick=2))
    flow.batch("work", same, after=["one", "rate", "two"]).output("out", after="work")
    seen: list[Any] = []
    with run(flow, str(tmp_path), spark=spark, policy=None) as handle:
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
    came = topic(spark, broker, 1)
    values = [('{"id": 1}',), ("no json",), ('{"id": 2}',), ('{"id": "three"}',), (None,), (" ",)]
    put(broker.servers, came, spark.createDataFrame(values, "value string"))
    flow = Topology("bad").source("in", sources.kafka(broker.servers, came, "id long", end="latest"))
    flow.batch("work", same, after="in").output("out", after="work")
    graph = flow.build()
    with run(graph, str(tmp_path / "kept"), spark=spark, policy=None) as handle:
        finish(handle)
        assert sorted(handle.output("out").column("id").to_pylist()) == [1, 2]
        dead = handle.dead_letters().to_pylist()
        audit = handle.audit()
    assert sorted(json.loads(row["row"])["text"] for row in dead) == ["", " ", "no json", '{"id": "three"}']
    assert {row["operator"] for row in dead} == {"in"}
    assert (audit.entered, audit.finished, audit.dropped, audit.problems) == (6, 2, 4, ())
    stopping = Settings(on_error="stop")
    with (
        pytest.raises(OperatorFailed, match=r"operator 'in'.*could not read it"),
        run(graph, str(tmp_path / "stopped"), spark=spark, settings=stopping, policy=None) as handle,
    ):
        finish(handle)


def test_records_without_a_key_are_spread_over_the_partitions(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came, left = topic(spark, broker, 1), topic(spark, broker, 4)
    # The last is a tombstone.
    value = "if(id = 800, null, cast(cast(id as string) as binary)) as value"
    put(broker.servers, came, spark.range(0, 801).selectExpr(value))
    flow = Topology("bare").source("in", sources.kafka(broker.servers, came, value="binary", keep=(), end="latest"))
    flow.batch("work", same, after="in").sink("out", sinks.kafka(broker.servers, left, value="binary"), after="work")
    with run(flow, str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)
    found = records(spark, broker.servers, left).collect()
    assert Counter(None if row.value is None else int(bytes(row.value)) for row in found) == Counter(
        [*range(800), None]
    )
    assert all(row.key is None for row in found)
    assert min(Counter(row.partition for row in found).values()) > 100


def test_a_key_may_have_any_name_and_be_binary(spark: SparkSession, broker: Broker) -> None:
    left = topic(spark, broker, 2)
    sink = sinks.kafka(broker.servers, left, key="my-key")
    columns = "`my-key` binary, `a b` long, _due timestamp, _task string, _sequence long"
    rows = [(b"\xff\x00", 1, datetime.now(UTC), "run/3/out-0", 0), (None, 2, datetime.now(UTC), "run/3/out-0", 1)]
    write = sink.writer_for(spark, "out", pa.schema({"my-key": pa.binary(), "a b": pa.int64()}))
    write(spark.createDataFrame(rows, columns), Write("run-3-out", "run/3/out-", "out", 3, False))
    found = records(spark, broker.servers, left).collect()
    keys = {json.loads(bytes(row.value))["a b"]: row.key and bytes(row.key) for row in found}
    assert keys == {1: b"\xff\x00", 2: None}


def test_a_broker_killed_and_restarted_in_mid_run_loses_and_doubles_nothing(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came, left = topic(spark, broker), topic(spark, broker)
    put_ids(spark, broker.servers, came, 0, 2500)
    flow = Topology("hardy").source(
        "in", sources.kafka(broker.servers, came, "id long", end="latest", most_per_tick=100)
    )
    flow.batch("a", same, after="in", replicas=2).batch("b", same, after="a", replicas=2)
    flow.sink("out", sinks.kafka(broker.servers, left), after="b", replicas=2)
    with run(flow, str(tmp_path), spark=spark, policy=None) as handle:
        wait_for(lambda: handle.totals("out").finished > 500)
        broker.kill()
        broker.start()
        finish(handle, 120)
        audit = handle.audit()
    assert (audit.entered, audit.finished, audit.queued, audit.problems) == (2500, 2500, 0, ())
    # Not even a plain reader sees anything twice: the producer knows what the broker has of it.
    assert ids_in_topic(records(spark, broker.servers, left)) == each_once(2500)


def test_a_killed_driver_writes_again_what_it_had_written_and_a_reader_with_our_helper_sees_it_once(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came, left = topic(spark, broker), topic(spark, broker, 2)
    put_ids(spark, broker.servers, came, 0, 2000)
    command = [sys.executable, str(HERE / "mortal_copier.py"), str(tmp_path), broker.servers, came, left]
    killed = subprocess.run(
        [*command, "before the commit of a delivery"], capture_output=True, text=True, timeout=120, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    ended = subprocess.run([*command, "none"], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    plain = records(spark, broker.servers, left)
    seen = ids_in_topic(plain)
    assert set(seen) == set(range(2000)) and max(seen.values()) == 2
    assert ids_in_topic(kafka.once(plain)) == each_once(2000)
    # The same of a stream, in batches that cut through the repeats, and of any client that gives headers.
    options = {"kafka.bootstrap.servers": broker.servers, "subscribe": left, "startingOffsets": "earliest"}
    more = {"includeHeaders": "true", "maxOffsetsPerTrigger": "700"}
    stream = kafka.once(spark.readStream.format("kafka").options(**options, **more).load())
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    query = stream.select("value").writeStream.format("memory").queryName("once").outputMode("append").start()
    query.processAllAvailable()
    query.stop()
    spark.conf.unset("spark.sql.shuffle.partitions")
    assert ids_in_topic(spark.table("once")) == each_once(2000)
    memory = kafka.Once()
    new = []
    for row in sorted(plain.collect(), key=lambda row: (row.partition, row.offset)):
        if row.offset % 100 == 0:
            # As a client that stops here and starts again.
            memory = kafka.Once(json.loads(json.dumps(memory.to_json())))
        if memory.is_new(row.topic, row.partition, kafka.name_of((h.key, bytes(h.value)) for h in row.headers)):
            new.append(json.loads(bytes(row.value))["id"])
    assert Counter(new) == each_once(2000)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"value": "xml"}, "value must be 'json', 'string' or 'binary', got 'xml'"),
        ({"value": "json"}, "value='json' without a schema; add schema='...'"),
        ({"schema": "id long", "value": "string"}, "value='string' with a schema; remove schema, or value"),
        ({"keep": ("kez",)}, "keep has 'kez'; a record has key, topic"),
        ({"start": "beginning"}, "start must be 'earliest' or 'latest' or {partition: offset}, got 'beginning'"),
        ({"end": "earliest"}, "end must be 'latest' or {partition: offset}, got 'earliest'"),
        ({"most_per_tick": 0}, "most_per_tick must be 1 or more, got 0"),
        ({"schema": "key string"}, "'key' is in the schema and a column of the record; write keep="),
    ],
)
def test_what_is_wrong_with_a_source_is_said_when_it_is_declared(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(TopologyError, match="kafka: ") as error:
        sources.kafka("127.0.0.1:9092", "t", **wrong)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("columns", "spec", "said"),
    [
        ("id long", {"value": "string"}, "sink 'out': value='string' wants a column 'value', the columns are id"),
        ("key string", {}, "sink 'out': nothing is left for the JSON besides key"),
        ("id long", {"key": "user"}, "sink 'out': key='user', but the columns are id"),
        (
            "id long, headers string",
            {},
            "sink 'out': expected headers array<struct<key:string,value:binary>>, got string",
        ),
    ],
)
def test_what_a_sink_cannot_write_is_said_before_anything_runs(
    spark: SparkSession, tmp_path: Path, columns: str, spec: dict[str, Any], said: str
) -> None:
    made = sources.replay(_arrivals(), columns, make=lambda numbers: {})
    flow = Topology("bad").source("in", made).batch("work", same, after="in")
    flow.sink("out", sinks.kafka("127.0.0.1:9", "t", **spec), after="work")
    with pytest.raises(TopologyError) as error:
        run(flow, str(tmp_path), spark=spark, policy=None)
    assert said in str(error.value)


def _arrivals() -> Any:
    from elastream.workload import constant

    return constant(1, 1)


def test_missing_topics_and_partitions_are_named(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    came = topic(spark, broker, 2)

    def flow(source: Any, sink: Any) -> Topology:
        return Topology("x").source("in", source).batch("work", same, after="in").sink("out", sink, after="work")

    there = sources.kafka(broker.servers, came)
    for source, sink, said in (
        (
            sources.kafka(broker.servers, "nowhere"),
            sinks.kafka(broker.servers, came, value="binary"),
            "source 'in': no topic",
        ),
        (there, sinks.kafka(broker.servers, "nowhere", value="binary"), "sink 'out': no topic 'nowhere'"),
        (
            sources.kafka(broker.servers, came, start={5: 0}),
            sinks.kafka(broker.servers, came, value="binary"),
            "source 'in': start names partition 5, but",
        ),
    ):
        with pytest.raises(SettingError, match=said):
            run(flow(source, sink), str(tmp_path / uuid.uuid4().hex), spark=spark, policy=None)
    with (
        kafka_admin(spark, broker.servers) as admin,
        pytest.raises(SettingError, match="source 'in': no topic 'nowhere'"),
    ):
        admin.newest("nowhere", 1, "source 'in'")
    secrets = {"kafka.ssl.key.password": "hunter2", "kafka.security.protocol": "hunter2"}
    with (
        pytest.raises(SettingError, match=r"ConfigException: Invalid value \*\*\* for configuration security.protocol"),
        kafka_admin(spark, broker.servers, secrets),
    ):
        pass


def test_without_the_connector_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    flow = Topology("x").source("in", sources.kafka("127.0.0.1:9092", "t")).batch("work", same, after="in")
    with pytest.raises(SettingError) as error:
        run(flow.output("out", after="work"), str(tmp_path / "base"), policy=None)
    assert str(error.value).startswith(f"source 'in': expected Spark's Kafka connector in {tmp_path}/jars/connector-")
    assert str(error.value).endswith("; run make kafka")


def test_sinks_that_spark_writes_have_lanes_of_their_own() -> None:
    flow = Topology("x").source("in", sources.replay(_arrivals())).batch("work", same, after="in")
    flow.sink("out", sinks.kafka("h:1", "t"), after="work", chain=True)
    with pytest.raises(TopologyError, match="sink 'out': Spark writes what waits in its lanes; remove chain=True"):
        flow.build()


def test_the_example_copies_what_it_should(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clicks, pages = topic(spark, broker), topic(spark, broker, 2)
    users = "if(id % 5 = 0, 'robot', concat('user-', id)) as user"
    rows = spark.range(0, 1000).selectExpr(users, "concat('/page/', id % 50) as page")
    put(broker.servers, clicks, rows.selectExpr("to_json(struct(*)) as value"))
    said = said_by_example("02_kafka_to_kafka.py", [broker.servers, clicks, pages, str(tmp_path)], capsys)
    assert f"800 records in {pages}" in said
    assert "entered=1000, finished=1000, dropped=0, queued=0" in said
    found = records(spark, broker.servers, pages).collect()
    for row in found:
        made = json.loads(bytes(row.value))
        assert bytes(row.key).decode() == made["page"] and made["letters"] == len(made["page"])
    assert Counter(json.loads(bytes(row.value))["user"] for row in found) == Counter(
        f"user-{n}" for n in range(1000) if n % 5
    )


def test_a_topic_that_was_written_twice_is_read_once_by_the_next_topology(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came = topic(spark, broker, 2)
    once = [(sequence, tick) for tick in range(4) for sequence in range(50)]
    # Tick 2 was tried three times: once it got half way, once it was not committed, and then it was.
    again = [(n, t) for n, t in once if t < 2] + [(n, 2) for n in range(25)] + [(n, 2) for n in range(50)]
    written = again + [(n, t) for n, t in once if t >= 2]
    rows = [
        (
            json.dumps({"id": t * 50 + n}),
            n % 2,
            [("elastream", f"other/{t}/out-{n % 3}/{n}/{1700000000000000 + n}".encode())],
        )
        for n, t in written
    ]
    columns = "value string, partition int, headers array<struct<key:string,value:binary>>"
    put(broker.servers, came, spark.createDataFrame(rows, columns).coalesce(1))
    flow = Topology("next")
    # Fewer in a tick than were repeated, so that what is to be remembered crosses ticks.
    flow.source("in", sources.kafka(broker.servers, came, "id long", end="latest", once=True, most_per_tick=30))
    flow.batch("work", same, after="in", replicas=2).output("out", after="work")
    with run(flow, str(tmp_path), spark=spark, policy=None) as handle:
        wait_for(lambda: handle.totals("in").entered > 110)
        handle.stop()
    with run(flow, str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)
        found = handle.output("out").to_pylist()
        audit = handle.audit()
    assert Counter(row["id"] for row in found) == each_once(200)
    assert (audit.entered, audit.finished, audit.problems) == (200, 200, ())
    assert {row["timestamp"].timestamp() for row in found} == {1700000000 + n / 1e6 for n in range(50)}
