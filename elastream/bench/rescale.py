"""What a rescale costs: the ticks around it in Elastream, and the restart that a plain query needs for the same."""

import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.bench.plain import ArrowFunction, Batches, chain_query, default_session
from elastream.bench.watch import OPERATORS, four_operators, missing, watched
from elastream.bench.work import arrow_doze, arrow_nothing, doze, sink_doze
from elastream.workload import constant

FEW, MANY = 2, 8
"""Replicas of each operator before and after; for the plain query, partitions before and after."""

NEAR_S = 5.0
"""A long tick this soon after the rescale is blamed on it."""

STEPS: dict[str, ArrowFunction] = {"empty": arrow_nothing, "2ms": arrow_doze}


@dataclass(frozen=True)
class Rescale:
    """Ticks around a rescale of all four operators at once; every tuple waits 2 ms in each of them."""

    offered_per_s: float
    before_ms: float
    """The median tick before."""
    longest_ms: float
    """The longest tick of the five seconds after."""
    after_ms: float
    """The median tick after."""
    queued_before: int
    queued_after: int
    """Tuples in all lanes when the rescale came, and at the end."""
    ticks_ms: tuple[tuple[float, float], ...]
    """(seconds after the rescale at which a tick ended, how long it took)."""
    missing: int

    @property
    def ratio(self) -> float:
        return self.longest_ms / self.before_ms


@dataclass(frozen=True)
class Restart:
    """Stopping a plain query and starting it again with more partitions.

    From the call of `stop()` to the end of the first micro-batch.
    """

    work: str
    rows: int
    """Tuples a micro-batch."""
    partitions: int
    """After the restart; before it there were two."""
    first_ms: tuple[float, ...]
    """The first time in a session: as at any first rescale to this size, there are no workers for it yet."""
    again_ms: tuple[float, ...]
    """The second time in the same session, which finds the workers of the first."""
    batch_ms: float
    """The median micro-batch before."""


def measure_rescale(offered_per_s: float, warm_up: int, before_s: float, after_s: float) -> Rescale:
    """Two replicas of each operator become eight in mid-run."""
    graph = four_operators(constant(offered_per_s, 3600), doze, sink_doze, replicas=(FEW, MANY), kind="map")
    with watched(graph) as run:
        run.wait_for_ticks(warm_up, 240)
        time.sleep(before_s)
        queued_before = sum(run.ticks[-1].queued.values())
        at_s = time.time()
        for name in OPERATORS:
            run.handle.scale(name, MANY)
        run.wait_past(at_s + after_s, after_s + 120)
        audit = run.stop()
    series = [(tick.ended_s - at_s, (tick.ended_s - tick.started_s) * 1e3) for tick in run.ticks]
    return Rescale(
        offered_per_s,
        median(ms for at, ms in series if -before_s <= at < 0),
        max(ms for at, ms in series if 0 <= at <= NEAR_S),
        median(ms for at, ms in series if at >= 0),
        queued_before,
        sum(run.ticks[-1].queued.values()),
        tuple((round(at, 3), round(ms, 1)) for at, ms in series if at >= -before_s),
        missing(audit),
    )


def measure_restart(work: str, master: str, rows: int, many: int, repeats: int, warm_up: int) -> Restart:
    """In each of several sessions, one after another in a JVM that stays warm, restart once and once again."""
    restarts_ms: list[float] = []
    batch_ms: list[float] = []
    for _ in range(repeats):
        spark = default_session(master)
        with TemporaryDirectory(prefix="elastream-bench-") as folder:
            for _ in range(2):
                query, batches = _query(spark, work, rows, FEW, folder)
                batches.wait_for(query, warm_up, 240)
                batch_ms += [(after - before) * 1e3 for before, after in pairwise(batches.ended_s[1:])]
                began = time.perf_counter()
                query.stop()
                query, batches = _query(spark, work, rows, many, folder)
                batches.wait_for(query, 1, 240)
                restarts_ms.append((batches.ended_s[0] - began) * 1e3)
                query.stop()
        spark.stop()
    return Restart(work, rows, many, tuple(restarts_ms[::2]), tuple(restarts_ms[1::2]), median(batch_ms))


def _query(spark: SparkSession, work: str, rows: int, partitions: int, folder: str) -> tuple[StreamingQuery, Batches]:
    """Always with the same checkpoint, so that it goes on where it was."""
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    checkpoint = f"file://{folder}/checkpoint"
    return chain_query(spark, (STEPS[work],) * 4, rows=rows, partitions=partitions, checkpoint=checkpoint)
