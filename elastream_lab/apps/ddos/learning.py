"""The batch layer of the application `ddos`: flows of the past enter, a model of what is normal leaves.

Spark aggregates, which is most of the work; principal components of one row per window are numpy's. Without a file, and without
Spark, the model is learned when it is first needed, from generated traffic that nobody attacks.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from elastream.workload.counter_hash import Numbers
from elastream_lab.apps.ddos.clock import START_US, WEEK_S, flow_clock
from elastream_lab.apps.ddos.features import DIMENSIONS, TOTALS, feature_rows, window_features
from elastream_lab.apps.ddos.files import DEFAULTS, NEEDED, find_columns
from elastream_lab.apps.ddos.parsing import FLOW, flows_of
from elastream_lab.apps.ddos.subspace_model import SubspaceModel, fit_subspace
from elastream_lab.apps.ddos.traffic import Traffic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOW_S = 60
"""The period of the paper."""
NORMAL = Traffic(seed=1, attacks=False)
APART_S = 960
"""A window of every so many seconds is enough to know a week."""
GENERATORS = 2
"""Tasks that generate flows."""


def learn(spark: "SparkSession", records: "DataFrame", window_s: int = WINDOW_S) -> SubspaceModel:
    """The batch job: parsed flows as a DataFrame with the columns of `FLOW` enter, the model leaves."""
    from pyspark.sql import functions as sql

    window = (sql.unix_micros("at") / (window_s * 1_000_000)).cast("long") * window_s
    # One shuffle, for a window's flows are then together; and each of them once per dimension.
    flows = records.withColumn("window", window).repartition(spark.sparkContext.defaultParallelism, "window")
    by = sql.explode(sql.array(*(sql.struct(sql.lit(d).alias("by"), sql.col(d).alias("value")) for d in DIMENSIONS)))
    flows = flows.select("window", "packets", "bytes", "gap_ms", by.alias("of")).select("*", "of.*")
    sums = [sql.sum(name).alias(name) for name in TOTALS[1:]]
    counted = flows.groupBy("window", "by", "value").agg(sql.count("*").cast("double").alias("n"), *sums)
    spread = [sql.count("*"), sql.sum("n"), sql.sum(sql.col("n") * sql.log("n")), sql.max("n")]
    rows = counted.groupBy("window", "by").agg(*spread, *(sql.sum(name) for name in TOTALS[1:])).collect()
    found = {(row[0], row[1]): np.array(row[2:], np.float64) for row in rows}
    windows = sorted({window for window, _ in found})
    spreads = {d: np.array([found[window, d][:4] for window in windows]).reshape(-1, 4) for d in DIMENSIONS}
    totals = [[found[window, "destination"][place] for place in (1, 4, 5, 6)] for window in windows]
    return fit_subspace(feature_rows(np.array(totals).reshape(-1, 4), spreads), window_s)


def records_in(spark: "SparkSession", file: str | None, window_s: int = WINDOW_S) -> "DataFrame":
    """The flows of a CSV file, whole; without one generated ones. Both are made and read by Spark's tasks.

    Times are in UTC; a row without one is in no window, and left out.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.pandas.types import from_arrow_schema

    if file is None:
        places = spark.range(0, len(normal_windows(window_s)), 1, GENERATORS)
        return places.mapInArrow(_NormalFlows(window_s), from_arrow_schema(FLOW))
    frame = spark.read.csv(file, header=True)
    named = find_columns(file, frame.columns)
    found = {name: sql.col(f"`{named[name]}`") for name in named}
    cells = {name: found.get(name, sql.lit(default)) for name, default in DEFAULTS.items()}
    packets = sql.coalesce(cells["packets"].cast("long"), sql.lit(1))
    ms = sql.coalesce(cells["ms"].cast("double"), sql.lit(0.0))
    return frame.select(
        sql.to_timestamp(sql.concat(found["time"], sql.lit("+00:00"))).alias("at"),
        *(sql.coalesce(found[name].cast("string"), sql.lit("")).alias(name) for name in NEEDED[1:]),
        packets.alias("packets"),
        sql.coalesce(cells["bytes"].cast("long"), sql.lit(0)).alias("bytes"),
        (ms / sql.greatest(packets - 1, sql.lit(1))).alias("gap_ms"),
        sql.coalesce(cells["label"], sql.lit("")).alias("label"),
    ).where("at is not null")


class _NormalFlows:
    """For Spark's tasks: places of windows enter, their flows leave."""

    def __init__(self, window_s: int) -> None:
        self._window_s = window_s

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        windows = normal_windows(self._window_s)
        for batch in batches:
            yield normal_flows(windows[np.asarray(batch.column(0))], self._window_s)


@lru_cache(maxsize=1)
def generated_model() -> SubspaceModel:
    """Of the traffic that is generated, in normal times."""
    flows = pa.Table.from_batches([normal_flows(normal_windows(WINDOW_S), WINDOW_S)])
    return fit_subspace(window_features(flows, WINDOW_S)[1], WINDOW_S)


def normal_windows(window_s: int) -> Numbers:
    """Where windows begin, in seconds since 1970, that are spread over a week."""
    first = -(-START_US // (window_s * 1_000_000)) * window_s
    every = -(-APART_S // window_s) * window_s
    return np.arange(first, START_US // 1_000_000 + WEEK_S - window_s, every, dtype=np.int64)


def normal_flows(starts_s: Numbers, window_s: int) -> pa.RecordBatch:
    """All flows of these windows in normal times, parsed."""
    clock = flow_clock(NORMAL.seed, NORMAL.attacks)
    begins_s = starts_s - START_US // 1_000_000
    numbers = [clock.numbers_between(begin_s, begin_s + window_s) for begin_s in begins_s.tolist()]
    return flows_of(NORMAL(np.concatenate(numbers)))
