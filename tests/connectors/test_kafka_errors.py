"""What is wrong with a Kafka source or sink is said before anything runs."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from flows import same
from kafka_broker import new_topic
from pyspark.sql import SparkSession

from elastream import Topology, sinks, sources, start
from elastream.connectors.kafka.admin import kafka_admin
from elastream.engine.spark.jars import CACHE
from elastream.errors import SettingError, TopologyError
from elastream.testing.broker import Broker
from elastream.workload import constant


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
    ("servers", "topic", "said"),
    [
        (["a:1"], "t", "servers must be text such as 'host:9092,other:9092', got a list"),
        ("a", "t", "servers must be text such as 'host:9092,other:9092', got 'a'"),
        ("a:1,", "t", "got 'a:1,'"),
        ("a:1", ["t"], "expected the name of one topic as text, got ['t']"),
        ("a:1", "", "expected the name of one topic as text, got ''"),
    ],
)
def test_brokers_and_topics_that_cannot_be_are_refused_when_they_are_declared(
    servers: Any, topic: Any, said: str
) -> None:
    for kind in (sources.kafka, sinks.kafka):
        with pytest.raises(TopologyError) as error:
            kind(servers, topic)
        assert str(error.value).startswith("kafka: ") and said in str(error.value)
        kind("[::1]:9092, b-1.example:9092", "t")


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
    made = sources.replay(constant(1, 1), columns, make=lambda numbers: {})
    flow = Topology("bad").source("in", made).batch("work", same).topology
    flow.sink("out", sinks.kafka("127.0.0.1:9", "t", **spec), after="work")
    with pytest.raises(TopologyError) as error:
        start(flow, str(tmp_path), spark=spark, policy=None)
    assert said in str(error.value)


def test_missing_topics_and_partitions_are_named(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    came = new_topic(spark, broker, 2)

    def flow(source: Any, sink: Any) -> Topology:
        return Topology("x").source("in", source).batch("work", same).sink("out", sink).topology

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
            start(flow(source, sink), str(tmp_path / uuid.uuid4().hex), spark=spark, policy=None)
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
    flow = Topology("x").source("in", sources.kafka("127.0.0.1:9092", "t")).batch("work", same).topology
    with pytest.raises(SettingError) as error:
        start(flow.output("out", after="work"), str(tmp_path / "base"), policy=None)
    assert str(error.value).startswith(f"source 'in': expected Spark's Kafka connector in {tmp_path}/jars/connector-")
    assert str(error.value).endswith("; run make kafka")


def test_sinks_that_spark_writes_have_lanes_of_their_own() -> None:
    flow = Topology("x").source("in", sources.replay(constant(1, 1))).batch("work", same).topology
    flow.sink("out", sinks.kafka("h:1", "t"), after="work", chain=True)
    with pytest.raises(TopologyError, match="sink 'out': Spark writes what waits in its lanes; remove chain=True"):
        flow.build()
