"""Kafka when something dies, on a real broker: the broker, the driver, and whoever wrote the topic before."""

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from flows import each_once, finish, same, wait_for
from kafka_broker import ids_in_topic, new_topic, put, put_ids, records
from pyspark.sql import SparkSession

from elastream import Topology, kafka, sinks, sources, start
from elastream.testing.broker import Broker

SUPPORT = Path(__file__).parents[1] / "support"


def test_a_broker_killed_and_restarted_in_mid_run_loses_and_doubles_nothing(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came, left = new_topic(spark, broker), new_topic(spark, broker)
    put_ids(spark, broker.servers, came, 0, 2500)
    flow = Topology("hardy")
    flow.source("in", sources.kafka(broker.servers, came, "id long", end="latest", most_per_tick=100))
    flow.batch("a", same, after="in", replicas=2).batch("b", same, replicas=2)
    flow.sink("out", sinks.kafka(broker.servers, left), after="b", replicas=2)
    with start(flow, str(tmp_path), spark=spark, policy=None) as handle:
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
    came, left = new_topic(spark, broker), new_topic(spark, broker, 2)
    put_ids(spark, broker.servers, came, 0, 2000)
    command = [sys.executable, str(SUPPORT / "mortal_copier.py"), str(tmp_path), broker.servers, came, left]
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


def test_a_topic_that_was_written_twice_is_read_once_by_the_next_topology(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    came = new_topic(spark, broker, 2)
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
    flow.batch("work", same, after="in", replicas=2).output("out")
    with start(flow, str(tmp_path), spark=spark, policy=None) as handle:
        wait_for(lambda: handle.totals("in").entered > 110)
        handle.stop()
    with start(flow, str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)
        found = handle.output("out").to_pylist()
        audit = handle.audit()
    assert Counter(row["id"] for row in found) == each_once(200)
    assert (audit.entered, audit.finished, audit.problems) == (200, 200, ())
    assert {row["timestamp"].timestamp() for row in found} == {1700000000 + n / 1e6 for n in range(50)}
