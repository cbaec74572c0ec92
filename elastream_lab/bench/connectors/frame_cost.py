"""What a tick costs, in CPU time of all processes: with a dataframe operator in it, and as a micro-batch of a plain query."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame

from elastream.connectors import sources
from elastream.engine.spark.session import FRAME_SETTINGS
from elastream.errors import RunFailed
from elastream.settings import Settings, WorkSettings
from elastream.topology import Topology
from elastream_lab.bench.common.cpu import cpu_s
from elastream_lab.bench.common.plain import Batches, default_session
from elastream_lab.bench.common.watch import watched
from elastream_lab.bench.common.work import nothing, sink_nothing
from elastream_lab.bench.connectors.frame_work import COLUMNS, WORK, rate_rows

LANES = "lanes"
"""An operator that is a function and does nothing: what the lanes cost without Spark."""


BUDGET_S = 10.0
"""So long that an operator serves all rows of a micro-batch in one tick."""


@dataclass(frozen=True)
class FrameCost:
    """Of one system with one kind of work."""

    system: str
    """`elastream`, or `plain` for one Structured Streaming query."""
    work: str
    cpu_ms: float
    """Of a core, that a tick or micro-batch cost, all processes together."""
    ticks: int


def measure_frame_cost(work: str, cores: int, rows: int, warm_up_s: float, seconds: float) -> FrameCost:
    """Spark's cheapest source, the operator, and a sink that keeps nothing; `rows` tuples in every tick."""
    flow = Topology("bench")
    flow.source("in", sources.dataframe(lambda spark: rate_rows(spark, rows, cores), COLUMNS))
    if work == LANES:
        flow.batch("work", nothing, after="in", replicas=cores)
    else:
        flow.dataframe("work", WORK[work].function, after="in", schema=WORK[work].schema, replicas=cores)
    flow.sink("last", sink_nothing, after="work", replicas=cores)
    settings = Settings(works=WorkSettings(budget_s=BUDGET_S, max_budget_s=BUDGET_S))
    with watched(flow.build(), f"local[{cores},4]", settings) as run:
        run.wait_for_ticks(3, 120)
        run.wait_past(time.time() + warm_up_s, warm_up_s + 60)
        first, before_s = len(run.ticks), cpu_s()
        run.wait_past(time.time() + seconds, seconds + 60)
        last, used_s = len(run.ticks), cpu_s() - before_s
        run.stop()
    ticks = run.ticks[first:last]
    served = sum(tick.counts("work").processed for tick in ticks)
    if not served:
        raise RunFailed(f"bench: {work} served nothing in {seconds:.0f} s")
    return FrameCost("elastream", work, used_s * rows / served * 1e3, served // rows)


def measure_plain_cost(work: str, cores: int, rows: int, warm_up_s: float, seconds: float) -> FrameCost:
    """The same tuples from Spark's cheapest source to Spark's cheapest sink, one micro-batch after another."""
    spark = default_session(f"local[{cores},4]", FRAME_SETTINGS | {"spark.sql.shuffle.partitions": "4"})
    function: Callable[[DataFrame], DataFrame] = WORK[work].function
    batches = Batches()

    def execute(batch: DataFrame, number: int) -> None:
        batch.write.format("noop").mode("overwrite").save()
        batches.ended_s.append(time.perf_counter())

    with TemporaryDirectory(prefix="elastream-bench-") as folder:
        query = (
            function(rate_rows(spark, rows, cores))
            .writeStream.foreachBatch(execute)
            .option("checkpointLocation", f"file://{folder}/checkpoint")
            .trigger(processingTime="0 seconds")
            .start()
        )
        batches.wait_for(query, 2, 180)
        time.sleep(warm_up_s)
        batches.wait_for(query, len(batches.ended_s) + 1, 60)
        first, before_s = len(batches.ended_s), cpu_s()
        batches.wait(query, lambda: batches.ended_s[-1] - batches.ended_s[first - 1] >= seconds, seconds * 5 + 60)
        last, used_s = len(batches.ended_s), cpu_s() - before_s
        query.stop()
    return FrameCost("plain", work, used_s / (last - first) * 1e3, last - first)
