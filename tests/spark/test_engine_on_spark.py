"""The engine on Spark itself: hosts are Spark's tasks, and its streaming DataFrames are sources and outputs."""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from flows import each_once, finish, ids_of, numbers, same, wait_for
from pyspark.sql import SparkSession

from elastream import Topology, sources, start
from elastream.errors import SettingError, TopologyError
from elastream.lanes import Store, audit
from elastream.lanes.lease import BaseLease
from elastream.workload import constant


def test_a_streaming_dataframe_is_a_source_and_an_output_is_a_streaming_dataframe(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 200).load().withColumnRenamed("value", "id")
    )
    flow = Topology("frames")
    flow.source("rate", sources.dataframe(frame.select("id"), due=None))
    flow.batch("work", same, after="rate", replicas=3).output("out")
    with start(flow, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        follow = handle.stream("out").writeStream.format("memory").queryName("followed").start()
        wait_for(lambda: spark.table("followed").count() >= 2000)
        follow.processAllAvailable()
        follow.stop()
        handle.stop()
        seen = Counter(row.id for row in spark.table("followed").collect())
        audit = handle.audit()
    assert max(seen.values()) == 1
    assert sorted(seen) == list(range(len(seen)))
    assert audit.problems == ()
    with start(flow, str(tmp_path / "base"), spark=spark, policy=None) as again:
        before = audit.entered
        wait_for(lambda: again.totals("rate").entered > before + 1000)
        again.stop()
        rest = ids_of(again)
    # What the reader had acknowledged may be gone; nothing that is left was there before, and no id is missing.
    together = seen + rest
    assert sorted(together) == list(range(max(together) + 1))


def test_a_source_whose_frame_lacks_a_declared_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rate = sources.dataframe(lambda spark: spark.readStream.format("rate").load(), schema="value long, user string")
    flow = Topology("bad").source("rate", rate).output("out")
    with pytest.raises(
        TopologyError, match=r"source 'rate': expected .* columns value, user, got one with timestamp, value"
    ):
        start(flow, str(tmp_path), spark=spark, policy=None)
    # The base is free again after the refusal.
    with start(numbers(5).output("out", after="in"), str(tmp_path), spark=spark, policy=None) as handle:
        finish(handle)


def test_a_worker_process_that_is_killed_costs_no_tuple(spark: SparkSession, tmp_path: Path) -> None:
    marker = tmp_path / "killed"

    def die_once(batch: pa.RecordBatch) -> pa.RecordBatch:
        if not marker.exists() and pa.compute.max(batch.column("id")).as_py() > 500:
            marker.write_text("now")
            os.kill(os.getpid(), 9)
        return batch

    flow = Topology("killed")
    flow.source("in", sources.replay(constant(600, 3)))
    flow.batch("fragile", die_once, after="in", replicas=2).output("out")
    with start(flow, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        finish(handle)
        assert ids_of(handle) == each_once(1800)
        assert handle.audit().problems == ()
    assert marker.exists()


def test_a_base_whose_checkpoint_was_lost_is_not_read_from_the_start_again(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 1}\n{"id": 2}\n')
    files = sources.dataframe(
        lambda spark: spark.readStream.schema("id long").json(str(tmp_path / "in")), schema="id long"
    )
    flow = Topology("lost").source("files", files).output("out")
    with start(flow, str(tmp_path / "base"), spark=spark, policy=None) as handle:
        until = time.monotonic() + 60
        while sum(ids_of(handle).values()) < 2:
            assert time.monotonic() < until
            time.sleep(0.1)
    shutil.move(tmp_path / "base" / "checkpoint", tmp_path / "kept")
    with pytest.raises(
        SettingError, match=r"source 'files': base .* another checkpoint of Spark's.*give that one back"
    ):
        start(flow, str(tmp_path / "base"), spark=spark, policy=None).await_end(60)
    shutil.rmtree(tmp_path / "base" / "checkpoint")
    shutil.move(tmp_path / "kept", tmp_path / "base" / "checkpoint")
    (tmp_path / "in" / "2.json").write_text('{"id": 3}\n')
    with start(flow, str(tmp_path / "base"), spark=spark, policy=None) as again:
        until = time.monotonic() + 60
        while sum(ids_of(again).values()) < 3:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert ids_of(again) == Counter([1, 2, 3])


def test_nobody_else_can_reach_the_sockets_of_python_workers(spark: SparkSession) -> None:
    folder = Path(spark.sparkContext.getConf().get("spark.python.unix.domain.socket.dir") or "")
    assert spark.sparkContext.parallelize([1], 1).map(lambda number: number).collect() == [1]
    assert folder.stat().st_mode & 0o077 == 0
    assert any(path.suffix == ".sock" for path in folder.iterdir())


def test_a_run_whose_java_process_is_killed_says_so_and_lets_its_base_go(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from elastream import Topology, sources, start
from elastream.errors import RunFailed
from elastream.lanes import Store, audit
from elastream.lanes.lease import BaseLease
from elastream.workload import constant

flow = Topology("orphan").source("in", sources.replay(constant(1000, 60))).output("out")
handle = start(flow, sys.argv[1], policy=None)
while handle.totals("in").processed < 100:
    handle.await_end(0.05)
os.kill(handle.spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
try:
    handle.await_end(60)
except RunFailed as failure:
    print("said:", failure)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert "said: Spark has ended" in done.stdout, done.stderr
    found = audit(Store(str(tmp_path)))
    assert found.finished >= 100 and found.problems == ()
    lease = BaseLease(Store(str(tmp_path)))
    lease.acquire()
    lease.release()
