"""Keyed state measured: a count of many keys, beside the same operator without state and beside Spark's own count."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from elastream.connectors import sources
from elastream.engine import Handle, start
from elastream.engine.driver.ports import Tick
from elastream.errors import RunFailed
from elastream.report.latency import Latencies
from elastream.settings import Settings, StateSettings
from elastream.topology import Graph, Topology, groupings
from elastream.workload import constant
from elastream_lab.bench.common.plain import default_session
from elastream_lab.bench.common.work import sink_nothing

LEAP = 7919
"""Keys do not come in the order of their numbers."""

FEWEST_BATCHES = 3
"""A rate needs a first batch, a last one and one between, however slow the machine."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Rate:
    """What one way to count gave at an offered rate."""

    way: str
    """`keyed`, `without state`, or `spark`."""
    offered_per_s: float
    finished_per_s: float
    latency_mean_ms: float
    latency_p95_ms: float


@dataclass(frozen=True)
class KeyedStory:
    """A run in which everything happens to the state of a count."""

    keys: int
    offered_per_s: float
    finished_per_s: float
    latency_p95_ms: float
    moved_groups: int
    between_hosts: int
    moved_keys: int
    waited_ms: float
    """The longest that a key waited for its state to move, from 2 to 8 replicas."""
    move_took_ms: float
    same: bool
    """Checksums before and after every move were the same."""
    memory_per_key: float
    """Bytes that a host's store has in memory for a key; 0 where the system does not say."""
    arrow_per_key: float
    """Bytes of a key and its state as Arrow has them."""
    disk_bytes: int
    """Of the base, when the stream had ended."""
    counted: int
    entered: int
    problems: int


@dataclass(frozen=True)
class Recovery:
    """How long keys of a host that was killed were not served."""

    ring: bool
    keys: int
    kills: int
    longest_s: float
    median_s: float
    same: bool
    """Every tuple was counted once, or is in the dead letters."""


@dataclass(frozen=True)
class Restarted:
    """A base with the state of many keys, started again."""

    keys: int
    first_tuple_s: float
    """From the call of `run` until the first tuple was counted."""


def count_one(key: int, rows: Rows, state: Any) -> Iterator[dict[str, Any]]:
    state.n += len(rows)
    yield {"key": key, "n": state.n}


def without_state(row: dict[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], "n": 1}


def counting(keys: int, per_s: float, seconds: float, way: str, replicas: tuple[int, int], start: int) -> Graph:
    def make(numbers: Any) -> dict[str, Any]:
        return {"key": numbers * LEAP % keys}

    flow = Topology("bench")
    flow.source("in", sources.replay(constant(per_s, seconds), "key long", make))
    if way == "keyed":
        flow.key_by("key", after="in").process(
            "count",
            count_one,
            state="n long",
            initial={"n": 0},
            schema="key long, n long",
            replicas=replicas,
            start=start,
        )
    else:
        grouping = groupings.fields("key")
        flow.map(
            "count",
            without_state,
            after="in",
            schema="key long, n long",
            grouping=grouping,
            replicas=replicas,
            start=start,
        )
    flow.sink("last", sink_nothing, after="count", replicas=2)
    return flow.build()


class Watch:
    """Follows a run by its ticks: what was counted, how late it was, and when each lane last counted something."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.served_s: dict[int, float] = {}
        self.gaps: dict[int, float] = {}
        """Per lane, the longest time between two ticks in which it counted."""
        self.latencies = Latencies()
        self.finished = 0
        handle.subscribe(self._add)

    def _add(self, tick: Tick) -> None:
        self.latencies.merge(tick.result.latencies)
        self.finished += tick.counts("last").finished
        now = time.monotonic()
        for receipt in tick.result.receipts:
            if receipt.operator == "count" and receipt.processed:
                gap = now - self.served_s.get(receipt.lane, now)
                self.gaps[receipt.lane] = max(self.gaps.get(receipt.lane, 0.0), gap)
                self.served_s[receipt.lane] = now

    def rate(self, way: str, offered_per_s: float, seconds: float) -> Rate:
        """Over the next seconds."""
        self.latencies, before, began = Latencies(), self.finished, time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        mean_ms, p95_ms = self.latencies.mean_s * 1e3, self.latencies.percentile_s(0.95) * 1e3
        return Rate(way, offered_per_s, (self.finished - before) / took, mean_ms, p95_ms)

    def wait(self, until: Callable[[], object], timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not until():
            if not self.handle.active or time.monotonic() > deadline:
                raise RunFailed(f"bench: expected {what} within {timeout_s:.0f} s")
            time.sleep(0.02)


def measure_keyed_rate(way: str, keys: int, offered_per_s: float, fill_s: float, seconds: float) -> Rate:
    """Two replicas, after so many seconds in which keys have come for the first time."""
    graph = counting(keys, offered_per_s, fill_s + seconds + 60, way, (2, 2), 2)
    with TemporaryDirectory(prefix="elastream-bench-") as folder, start(graph, f"{folder}/base", policy=None) as handle:
        watch = Watch(handle)
        watch.wait(
            lambda: handle.totals("count").processed >= offered_per_s * fill_s * 0.5, fill_s * 4 + 120, "the keys"
        )
        handle.await_begin(60)
        time.sleep(fill_s / 2)
        return watch.rate(way, offered_per_s, seconds)


def measure_spark_count(keys: int, offered_per_s: float, fill_s: float, seconds: float) -> Rate:
    """Spark's `groupBy().count()` in update mode, state in RocksDB, on as many cores."""
    cores = os.cpu_count() or 1
    store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    settings = {"spark.sql.streaming.stateStore.providerClass": store, "spark.sql.shuffle.partitions": str(cores)}
    spark = default_session(f"local[{cores},4]", settings)
    ended: dict[int, float] = {}

    def execute(batch: DataFrame, number: int) -> None:
        batch.write.format("noop").mode("overwrite").save()
        ended[number] = time.time()

    rows = spark.readStream.format("rate").option("rowsPerSecond", int(offered_per_s)).load()
    due_us = F.unix_micros("timestamp")
    rows = rows.observe("seen", F.count("*").alias("n"), F.min(due_us).alias("low"), F.max(due_us).alias("high"))
    counted = rows.groupBy((F.col("value") * LEAP % keys).alias("key")).count()
    with TemporaryDirectory(prefix="elastream-bench-") as folder:
        query = (
            counted.writeStream.foreachBatch(execute)
            .outputMode("update")
            .option("checkpointLocation", f"file://{folder}/checkpoint")
            .start()
        )
        time.sleep(fill_s)
        _until(lambda: len(ended) >= 2, 120)
        begin = time.time()
        time.sleep(seconds)
        _until(lambda: sum(at >= begin for at in ended.values()) >= FEWEST_BATCHES, 120)
        _until(lambda: any(report.batchId >= max(ended) - 1 for report in query.recentProgress[-2:]), 10)
        progress = [report for report in query.recentProgress if ended.get(report.batchId, 0.0) >= begin]
        query.stop()
    latencies, finished, first = Latencies(), 0, min(ended[report.batchId] for report in progress)
    for report in progress:
        seen = report.observedMetrics.get("seen")
        if seen is None or not seen["n"]:
            continue
        # Tuples of a batch come evenly from its first to its last.
        due = np.linspace(seen["low"] / 1e6, seen["high"] / 1e6, 100)
        latencies.add(ended[report.batchId] - due)
        finished += int(seen["n"]) if ended[report.batchId] > first else 0
    span_s = max(ended[report.batchId] for report in progress) - first
    return Rate("spark", offered_per_s, finished / span_s, latencies.mean_s * 1e3, latencies.percentile_s(0.95) * 1e3)


def measure_keyed_story(keys: int, offered_per_s: float, fill_s: float, seconds: float) -> KeyedStory:
    """All keys come, the rate is measured, replicas go from 2 to 8 and back, and everything is counted again at the end."""
    total_s = fill_s + seconds + 5 + fill_s / 4
    graph = counting(keys, offered_per_s, total_s, "keyed", (1, 8), 2)
    with TemporaryDirectory(prefix="elastream-bench-") as folder, start(graph, f"{folder}/base", policy=None) as handle:
        watch = Watch(handle)
        handle.await_begin(60)
        time.sleep(fill_s)
        rate = watch.rate("keyed", offered_per_s, seconds)
        memory = [size for host in handle.status.hosts if (size := store_memory(host.pid))]
        for size in (8, 2):
            known = len(handle.state_moves)
            handle.scale("count", size)
            watch.wait(lambda: len(handle.state_moves) > known, 60, "the state to move")  # noqa: B023 - waited for here
        grown = handle.state_moves[-2]
        if not handle.await_end(total_s * 3 + 60):
            raise RunFailed("bench: the stream did not end")
        audit, table, disk = handle.audit(), handle.state("count"), _disk_bytes(Path(folder) / "base")
        moves = handle.state_moves
        entered = handle.totals("in").processed
    return KeyedStory(
        table.num_rows,
        offered_per_s,
        rate.finished_per_s,
        rate.latency_p95_ms,
        grown.groups,
        grown.between_hosts,
        grown.keys,
        grown.waited_ms,
        grown.took_ms,
        all(move.checksum_before == move.checksum_after and not move.problem for move in moves),
        max(memory, default=0) / max(1, table.num_rows),
        table.nbytes / max(1, table.num_rows),
        disk,
        int(pc.sum(table.column("n")).as_py()),
        entered,
        len(audit.problems),
    )


def measure_recovery(ring: bool, keys: int, offered_per_s: float, fill_s: float, kills: int) -> Recovery:
    """Hosts are killed one after another, while the stream flows and replicas change."""
    every_s = 6.0
    total_s = fill_s + kills * every_s + 5
    graph = counting(keys, offered_per_s, total_s, "keyed", (1, 8), 4)
    longest: list[float] = []
    settings = Settings(state=StateSettings(ring_s=1.0 if ring else None))
    with (
        TemporaryDirectory(prefix="elastream-bench-") as folder,
        start(graph, f"{folder}/base", settings=settings, policy=None) as handle,
    ):
        watch = Watch(handle)
        handle.await_begin(60)
        time.sleep(fill_s)
        for number in range(kills):
            status = handle.status
            hosts = status.hosts
            if len(hosts) > 1:
                victim = hosts[number % len(hosts)]
                lanes = [lane for lane, known in status.lanes.items() if known.host == victim.number]
                mine = [lane.lane for lane in lanes if lane.operator == "count" and lane.lane in watch.served_s]
                watch.gaps.clear()
                with suppress(ProcessLookupError):
                    os.kill(victim.pid, signal.SIGKILL)
                time.sleep(every_s / 2)
                longest.append(max((watch.gaps.get(lane, every_s / 2) for lane in mine), default=0.0))
            handle.scale("count", 4 + number % 2)
            time.sleep(every_s / 2)
        if not handle.await_end(total_s * 3 + 60):
            raise RunFailed("bench: the stream did not end")
        counted = int(pc.sum(handle.state("count").column("n")).as_py())
        # A work that three kills in a row have met is taken for the cause of them: its tuples are in the dead letters.
        counted += handle.dead_letters().num_rows
        same = counted == handle.totals("in").processed == int(offered_per_s * total_s) and not handle.audit().problems
        found = handle.state("count").num_rows
    return Recovery(ring, found, len(longest), max(longest), sorted(longest)[len(longest) // 2], same)


def measure_keyed_restart(keys: int, offered_per_s: float) -> Restarted:
    """All keys are counted, then the base is started again."""
    fill_s = keys / offered_per_s
    graph = counting(keys, offered_per_s, fill_s + 3600, "keyed", (2, 2), 2)
    with TemporaryDirectory(prefix="elastream-bench-") as folder:
        with start(graph, f"{folder}/base", policy=None) as handle:
            Watch(handle).wait(lambda: handle.totals("count").processed >= keys, fill_s * 5 + 120, "all keys")
            found = handle.state("count").num_rows
        before = handle.totals("count").processed
        began = time.monotonic()
        with start(graph, f"{folder}/base", policy=None) as handle:
            Watch(handle).wait(lambda: handle.totals("count").processed > before, 120, "the first tuple")
            took = time.monotonic() - began
    return Restarted(found, took)


def store_memory(pid: int) -> int:
    """Bytes of a host's store that are in memory, as Linux tells; 0 elsewhere."""
    with suppress(OSError):
        found = re.search(r"elastream-state-[^\n]*\n(?:.*\n)*?Rss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps").read_text())
        return int(found[1]) * 1024 if found else 0
    return 0


def _until(condition: Callable[[], bool], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise RunFailed(f"bench: Spark did not get far enough within {timeout_s:.0f} s")
        time.sleep(0.05)


def _disk_bytes(base: Path) -> int:
    return sum(file.stat().st_size for file in base.rglob("*") if file.is_file())
