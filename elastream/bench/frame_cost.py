"""What a tuple costs at a steady rate, in CPU time of all processes: with a dataframe operator, and in a plain query."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame

from elastream.bench.cpu import cpu_s
from elastream.bench.frame_work import COLUMNS, WORK, make_rows, rate_rows
from elastream.bench.plain import Batches, default_session
from elastream.bench.watch import tick_s, watched
from elastream.bench.work import nothing, sink_nothing
from elastream.engine import Settings, sources
from elastream.engine.session import FRAME_SETTINGS
from elastream.errors import RunFailed
from elastream.topology import Topology
from elastream.workload import constant

EMPTY = "empty"
"""An operator, or a query, that does nothing to its tuples."""


@dataclass(frozen=True)
class FrameCost:
    """Of one system with one kind of work."""

    system: str
    """`elastream`, or `plain` for one Structured Streaming query."""
    work: str
    per_second: float
    """What came, and was served."""
    us_each: float
    """Microseconds of a core that a tuple cost, all processes together."""
    batch_s: float
    """The median time from one tick, or micro-batch, to the next."""
    batches: int


def measure_frame_cost(work: str, cores: int, per_second: float, warm_up_s: float, seconds: float) -> FrameCost:
    """A replay, the operator, and a sink that keeps nothing."""
    arrivals = constant(per_second, warm_up_s + seconds + 60)
    flow = Topology("bench").source("in", sources.replay(arrivals, COLUMNS, partial(make_rows, per_second=per_second)))
    if work == EMPTY:
        flow.batch("work", nothing, after="in", replicas=cores)
    else:
        flow.dataframe("work", WORK[work].function, after="in", schema=WORK[work].schema, replicas=cores)
    flow.sink("last", sink_nothing, after="work", replicas=cores)
    with watched(flow.build(), f"local[{cores},4]", Settings()) as run:
        time.sleep(max(0.0, run.origin_s() + warm_up_s - time.time()))
        run.wait_past(time.time(), 60)
        first, before_s = len(run.ticks), cpu_s()
        run.wait_past(time.time() + seconds, seconds + 60)
        last, used_s = len(run.ticks), cpu_s() - before_s
        run.stop()
    ticks = run.ticks[first - 1 : last]
    served = sum(tick.settled.counts.get("work", {}).get("processed", 0) for tick in ticks[1:])
    span_s = ticks[-1].ended_s - ticks[0].ended_s
    if served < 0.9 * per_second * span_s:
        raise RunFailed(f"bench: {work} served {served / span_s:,.0f} of {per_second:,.0f} tuples/s; offer fewer")
    return FrameCost("elastream", work, served / span_s, used_s / served * 1e6, median(tick_s(ticks)), len(ticks) - 1)


def measure_plain_cost(
    work: str, cores: int, per_second: float, batch_s: float, warm_up_s: float, seconds: float
) -> FrameCost:
    """The same tuples from Spark's cheapest source, in micro-batches as long as the ticks were, to Spark's cheapest sink."""
    spark = default_session(f"local[{cores},4]", FRAME_SETTINGS | {"spark.sql.shuffle.partitions": "4"})
    rows = int(per_second * batch_s)
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", cores)
    frame = rate_rows(rate.load(), per_second)
    function: Callable[[DataFrame], DataFrame] = WORK["same" if work == EMPTY else work].function
    batches = Batches()

    def execute(batch: DataFrame, number: int) -> None:
        batch.write.format("noop").mode("overwrite").save()
        batches.ended_s.append(time.perf_counter())

    with TemporaryDirectory(prefix="elastream-bench-") as folder:
        query = (
            function(frame)
            .writeStream.foreachBatch(execute)
            .option("checkpointLocation", f"file://{folder}/checkpoint")
            .trigger(processingTime=f"{int(batch_s * 1000)} milliseconds")
            .start()
        )
        batches.wait_for(query, 2, 180)
        time.sleep(warm_up_s)
        batches.wait_for(query, len(batches.ended_s) + 1, 60)
        first, before_s = len(batches.ended_s), cpu_s()
        batches.wait(query, lambda: batches.ended_s[-1] - batches.ended_s[first - 1] >= seconds, seconds * 5 + 60)
        last, used_s = len(batches.ended_s), cpu_s() - before_s
        query.stop()
    ended_s = batches.ended_s[first - 1 : last]
    served, span_s = rows * (len(ended_s) - 1), ended_s[-1] - ended_s[0]
    gaps_s = [after - before for before, after in pairwise(ended_s)]
    return FrameCost("plain", work, served / span_s, used_s / served * 1e6, median(gaps_s), len(ended_s) - 1)
