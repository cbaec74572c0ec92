"""Rescales: how long nothing comes out around them in Elastream, and the restart that a plain query needs for the same."""

import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.workload import constant
from elastream_lab.bench.common.plain import ArrowFunction, Batches, chain_query, default_session
from elastream_lab.bench.common.watch import OPERATORS, finished, four_operators, missing, watched
from elastream_lab.bench.common.work import arrow_doze, arrow_nothing, doze, sink_doze

FEW, MANY = 2, 8
"""Replicas of each operator before and after; for the plain query, partitions before and after."""

NEAR_S = 0.5
"""A pause that begins this soon after a rescale is blamed on it."""

STEPS: dict[str, ArrowFunction] = {"empty": arrow_nothing, "2ms": arrow_doze}


@dataclass(frozen=True)
class Rescale:
    """Rescales of all four operators at once, two replicas to eight and back; every tuple waits 2 ms in each of them."""

    offered_per_s: float
    rescales: int
    usual_ms: float
    """The longest time without output while nothing is rescaled."""
    longest_ms: float
    """The longest that overlaps half a second after some rescale."""
    typical_ms: float
    """The median over the rescales."""
    gaps_ms: tuple[tuple[float, float], ...]
    """(seconds since the first rescale, time without output that ended then)."""
    at_s: tuple[float, ...]
    """When the rescales were, in the same seconds."""
    missing: int

    @property
    def beyond_ms(self) -> float:
        """Time without output around a rescale beyond the usual."""
        return max(0.0, self.longest_ms - self.usual_ms)


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


def measure_rescale(offered_per_s: float, warm_up_s: float, rescales: int, every_s: float) -> Rescale:
    """After a while without any, rescale back and forth."""
    graph = four_operators(constant(offered_per_s, 3600), doze, sink_doze, replicas=(FEW, MANY), kind="map")
    at_s: list[float] = []
    came: list[float] = []
    # Thousands of ticks in memory would make the driver stop to collect garbage: that would be measured, and not the rescales.
    with watched(graph, keep=1) as run:
        run.handle.subscribe(lambda tick: came.append(tick.ended_s) if finished(tick) else None)
        begin = run.origin_s() + warm_up_s
        run.wait_past(begin + rescales * every_s / 2, warm_up_s + rescales * every_s + 120)
        for number in range(rescales):
            at_s.append(time.time())
            for name in OPERATORS:
                run.handle.scale(name, FEW if number % 2 else MANY)
            time.sleep(every_s)
        audit = run.stop()
    gaps = [(after, (after - before) * 1e3) for before, after in pairwise(came) if before >= begin]
    near = [[ms for end, ms in gaps if end > at and end - ms / 1e3 < at + NEAR_S] for at in at_s]
    blamed = [max(found, default=0.0) for found in near]
    return Rescale(
        offered_per_s,
        rescales,
        max((ms for end, ms in gaps if end < at_s[0]), default=0.0),
        max(blamed),
        median(blamed),
        tuple((round(end - at_s[0], 3), round(ms, 1)) for end, ms in gaps),
        tuple(round(at - at_s[0], 3) for at in at_s),
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
