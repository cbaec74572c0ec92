"""From topic to topic, on a real broker: what a run writes has its keys, headers and times."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from flows import finish, said_by_example, same
from kafka_broker import new_topic, put, put_ids, records
from pyspark.sql import SparkSession

from elastream import Topology, kafka, sinks, sources, start
from elastream.connectors.spark_sink import SinkBatch
from elastream.testing.broker import Broker


def test_records_keep_their_keys_headers_and_times_from_topic_to_topic(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came, left = new_topic(spark, broker), new_topic(spark, broker, 2)
    put_ids(spark, broker.servers, came, 0, 900)
    flow = Topology("copy")
    flow.source("in", sources.kafka(broker.servers, came, "id long", end="latest"))
    flow.map("double", lambda row: {**row, "id": row["id"] * 2}, after="in", replicas=2)
    flow.sink("out", sinks.kafka(broker.servers, left), after="double", replicas=2)
    with start(flow, str(tmp_path), spark=spark, policy=None) as handle:
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


def test_records_without_a_key_are_spread_over_the_partitions(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came, left = new_topic(spark, broker, 1), new_topic(spark, broker, 4)
    # The last is a tombstone.
    value = "if(id = 800, null, cast(cast(id as string) as binary)) as value"
    put(broker.servers, came, spark.range(0, 801).selectExpr(value))
    flow = Topology("bare")
    flow.source("in", sources.kafka(broker.servers, came, value="binary", keep=(), end="latest"))
    flow.batch("work", same, after="in").sink("out", sinks.kafka(broker.servers, left, value="binary"))
    with start(flow, str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)
    found = records(spark, broker.servers, left).collect()
    assert Counter(None if row.value is None else int(bytes(row.value)) for row in found) == Counter(
        [*range(800), None]
    )
    assert all(row.key is None for row in found)
    assert min(Counter(row.partition for row in found).values()) > 100


def test_a_key_may_have_any_name_and_be_binary(spark: SparkSession, broker: Broker) -> None:
    left = new_topic(spark, broker, 2)
    sink = sinks.kafka(broker.servers, left, key="my-key")
    columns = "`my-key` binary, `a b` long, _due timestamp, _task string, _sequence long"
    rows = [(b"\xff\x00", 1, datetime.now(UTC), "run/3/out-0", 0), (None, 2, datetime.now(UTC), "run/3/out-0", 1)]
    write = sink.writer_for(spark, "out", pa.schema({"my-key": pa.binary(), "a b": pa.int64()}))
    write(spark.createDataFrame(rows, columns), SinkBatch("run-3-out", "run/3/out-", "out", 3, False))
    found = records(spark, broker.servers, left).collect()
    keys = {json.loads(bytes(row.value))["a b"]: row.key and bytes(row.key) for row in found}
    assert keys == {1: b"\xff\x00", 2: None}


def test_the_example_copies_what_it_should(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clicks, pages = new_topic(spark, broker), new_topic(spark, broker, 2)
    users = "if(id % 5 = 0, 'robot', concat('user-', id)) as user"
    rows = spark.range(0, 1000).selectExpr(users, "concat('/page/', id % 50) as page")
    put(broker.servers, clicks, rows.selectExpr("to_json(struct(*)) as value"))
    said = said_by_example("02_kafka_to_kafka.py", [broker.servers, clicks, pages, str(tmp_path)], capsys)
    assert f"800 records in {pages}" in said
    assert "read 1,000 = finished 1,000 + dropped 0 + dead letters 0 + queued 0" in said
    found = records(spark, broker.servers, pages).collect()
    for row in found:
        made = json.loads(bytes(row.value))
        assert bytes(row.key).decode() == made["page"] and made["letters"] == len(made["page"])
    assert Counter(json.loads(bytes(row.value))["user"] for row in found) == Counter(
        f"user-{n}" for n in range(1000) if n % 5
    )
