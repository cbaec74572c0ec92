"""Records per second from topic to topic: a plain Structured Streaming query, and Elastream with two empty operators."""

import json
import time
from dataclasses import dataclass
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.connectors.kafka.admin import kafka_admin
from elastream.connectors.sinks import kafka as to_kafka
from elastream.connectors.sources import kafka as from_kafka
from elastream.engine import session
from elastream.engine.driver.ports import Tick
from elastream.engine.spark.jars import found_jars
from elastream.errors import RunFailed
from elastream.topology import Topology
from elastream_lab.bench.common.plain import default_session
from elastream_lab.bench.common.watch import watched
from elastream_lab.bench.common.work import nothing

TIMEOUT_S = 900

Batch = tuple[float, int]
"""When it ended, and how many records it wrote."""


@dataclass(frozen=True)
class Filled:
    """What is there to be read."""

    topic: str
    records: int
    bytes_each: int
    partitions: int


@dataclass(frozen=True)
class FromTopicToTopic:
    """What one system sustained."""

    system: str
    """`elastream`, or `plain` for one Structured Streaming query."""
    config: str
    per_second: float
    seconds: float
    """How long it was measured, after a third of the records."""
    batches: int
    problems: int
    """What the audit complained of."""


def fill_topic(servers: str, topic: str, records: int, bytes_each: int, partitions: int) -> Filled:
    """Records with a key of 8 bytes and a value of `bytes_each`."""
    spark = session("local[4]")
    with kafka_admin(spark, servers) as admin:
        admin.create(topic, partitions)
    value = f"rpad(cast(id as string), {bytes_each}, 'x') as value"
    rows = spark.range(0, records, 1, 4).selectExpr("lpad(cast(id as string), 8, '0') as key", value)
    rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()
    return Filled(topic, records, bytes_each, partitions)


def measure_plain_kafka(servers: str, filled: dict[str, Any], cores: int, most: int) -> FromTopicToTopic:
    """Spark as it comes, `most` records a micro-batch."""
    spark = default_session(f"local[{cores}]", {"spark.jars": ",".join(map(str, found_jars()))})
    source = Filled(**filled)
    out = _topic(spark, servers, source, f"plain-{most}")
    options = {"kafka.bootstrap.servers": servers, "subscribe": source.topic, "startingOffsets": "earliest"}
    frame = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=str(most)).load()
    with TemporaryDirectory(prefix="elastream-bench-") as folder:
        query = (
            frame.select("key", "value")
            .writeStream.format("kafka")
            .options(**{"kafka.bootstrap.servers": servers, "topic": out, "checkpointLocation": f"file://{folder}"})
            .trigger(availableNow=True)
            .start()
        )
        batches: dict[int, Batch] = {}
        until = time.monotonic() + TIMEOUT_S
        while query.isActive and time.monotonic() < until:
            batches |= _ended(query)
            time.sleep(0.5)
        batches |= _ended(query)
        query.stop()
    if query.exception() or sum(rows for _, rows in batches.values()) < source.records:
        raise RunFailed(f"bench: the plain query did not get to the end: {str(query.exception())[:500]}")
    config = f"{most:,} records a micro-batch, {spark.sparkContext.master}"
    return _rate("plain", config, list(batches.values()), 0)


def measure_elastream_kafka(
    servers: str, filled: dict[str, Any], cores: int, most: int, replicas: int
) -> FromTopicToTopic:
    """The same through two operators that do nothing."""
    spark = session(f"local[{cores + 4},4]")
    source = Filled(**filled)
    out = _topic(spark, servers, source, f"elastream-{most}")
    topic = from_kafka(servers, source.topic, value="binary", keep=("key",), end="latest", most_per_tick=most)
    flow = Topology("bench")
    flow.source("in", topic)
    flow.batch("first", nothing, after="in", replicas=replicas)
    flow.batch("second", nothing, after="first", replicas=replicas)
    flow.sink("last", to_kafka(servers, out, value="binary"), after="second", replicas=replicas)
    with watched(flow.build(), f"local[{cores},4]") as run:
        run.wait(lambda: not run.handle.active, TIMEOUT_S, "the end of the topic")
        audit = run.stop()
    if (audit.entered, audit.finished) != (source.records, source.records):
        raise RunFailed(f"bench: {source.records} records, {audit.entered} entered, {audit.finished} finished")
    # When the topic has been read to its end, ticks have less to do than the plain query's batches: they do not count.
    reading = [tick.number for tick in run.ticks if tick.counts("in").processed]
    ticks = [(tick.ended_s, _finished(tick)) for tick in run.ticks if tick.number <= reading[-1]]
    config = f"{most:,} records a tick at most, {replicas} replicas an operator, {spark.sparkContext.master}"
    return _rate("elastream", config, ticks, len(audit.problems))


def _topic(spark: SparkSession, servers: str, filled: Filled, name: str) -> str:
    topic = f"{filled.topic}-{name}"
    with kafka_admin(spark, servers) as admin:
        admin.create(topic, filled.partitions)
    return topic


def _finished(tick: Tick) -> int:
    return tick.counts("last").finished


def _ended(query: StreamingQuery) -> dict[int, Batch]:
    """By number, the batches of which Spark has told."""
    found = {}
    for report in query._jsq.recentProgress():
        progress: dict[str, Any] = json.loads(report.json())
        if progress["numInputRows"]:
            began_s = datetime.fromisoformat(progress["timestamp"]).timestamp()
            took_s = progress["durationMs"]["triggerExecution"] / 1e3
            found[progress["batchId"]] = began_s + took_s, progress["numInputRows"]
    return found


def _rate(system: str, config: str, batches: list[Batch], problems: int) -> FromTopicToTopic:
    """From the end of the batch with which a third was written to the end of the last: the first third is the warm-up."""
    total, written = sum(rows for _, rows in batches), 0
    first = 0
    for first, (_, rows) in enumerate(batches):  # noqa: B007 - used below
        written += rows
        if written >= total / 3:
            break
    span_s = batches[-1][0] - batches[first][0]
    if span_s <= 0:
        raise RunFailed(f"bench: {len(batches)} batches of {system} are too few to measure a rate")
    return FromTopicToTopic(system, config, (total - written) / span_s, span_s, len(batches) - first - 1, problems)
