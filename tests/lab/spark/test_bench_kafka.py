"""The benchmark from topic to topic runs from end to end. How fast things are is the benchmark's to say, not a test's."""

import json
from dataclasses import asdict

import pytest
from pyspark.sql import SparkSession

from elastream.testing.broker import Broker
from elastream_lab.bench.common.document import document_of
from elastream_lab.bench.connectors.kafka import KafkaBench
from elastream_lab.bench.connectors.kafka_throughput import (
    Filled,
    FromTopicToTopic,
    fill_topic,
    measure_elastream_kafka,
    measure_plain_kafka,
)


def test_both_systems_are_measured_on_the_same_topic(spark: SparkSession, broker: Broker) -> None:
    filled = fill_topic(broker.servers, "bench", records=30_000, bytes_each=100, partitions=2)
    plain = measure_plain_kafka(broker.servers, asdict(filled), cores=2, most=4_000)
    own = measure_elastream_kafka(broker.servers, asdict(filled), cores=2, most=4_000, replicas=2)
    assert plain.per_second > 0 and own.per_second > 0 and own.problems == 0
    # A third is the warm-up: of eight batches two or three.
    assert plain.batches in (4, 5) and own.batches >= 1
    bench = KafkaBench(filled, (plain, own), 2, 0.0)
    assert json.loads(json.dumps(document_of(bench)))["ratio"] == pytest.approx(own.per_second / plain.per_second)


@pytest.mark.parametrize(("own", "met"), [(49.0, "**no**"), (50.0, "yes")])
def test_the_goal_is_half_of_the_best_plain_query(own: float, met: str) -> None:
    rates = [("plain", 80.0), ("plain", 100.0), ("elastream", own), ("elastream", 10.0)]
    measured = tuple(FromTopicToTopic(system, "", rate, 10.0, 5, 0) for system, rate in rates)
    bench = KafkaBench(Filled("bench", 1000, 100, 4), measured, 2, 0.0)
    assert f"**{own / 100:.2f}** (goal: at least 0.5; met: {met})" in bench.to_markdown()
