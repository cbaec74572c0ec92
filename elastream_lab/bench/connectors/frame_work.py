"""What the measured dataframe operators do. Plain functions of a DataFrame: both systems run the same."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.functions import pandas_udf  # type: ignore[attr-defined]

COLUMNS = "id long, key long, at timestamp, value double"

KEYS = 1000

BEGAN_US, EACH_US = 1_700_000_000_000_000, 10
"""The event time of the first tuple, and how much later each one is: 100,000 in a second."""


@dataclass(frozen=True)
class FrameWork:
    """A function and the columns that it gives."""

    function: Callable[[DataFrame], DataFrame]
    schema: str = COLUMNS
    beside: str = "same"
    """What does nothing else, and gives about as many tuples of that width: the rest of the cost is the work's."""


def rate_rows(spark: SparkSession, rows: int, partitions: int) -> DataFrame:
    """Tuples by their numbers from Spark's cheapest source, `rows` in every micro-batch."""
    source = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", partitions)
    )
    at = f"timestamp_micros({BEGAN_US} + value * {EACH_US})"
    return source.load().selectExpr("value as id", f"value % {KEYS} as key", f"{at} as at", "value * 0.5D as value")


def same(frame: DataFrame) -> DataFrame:
    return frame


def none(frame: DataFrame) -> DataFrame:
    return frame.where("id < 0")


def in_sql(frame: DataFrame) -> DataFrame:
    """A chain of eight digests, and some arithmetic."""
    digest = "concat_ws(':', id, key, value)"
    for _ in range(8):
        digest = f"sha2({digest}, 256)"
    return frame.selectExpr(f"xxhash64({digest}) as id", "key", "at", "round(value * 1.21, 2) as value")


def in_pandas(frame: DataFrame) -> DataFrame:
    """A small model: a weighted sum of twenty features, and a logistic function."""
    weights = np.linspace(-1.0, 1.0, 20)

    @pandas_udf("double")  # type: ignore[untyped-decorator]
    def score(values: pd.Series) -> pd.Series:
        features = np.sin(values.to_numpy()[:, None] * np.arange(1, 21))
        return pd.Series(1.0 / (1.0 + np.exp(-features @ weights)))

    return frame.withColumn("value", score("value"))


def joined(frame: DataFrame) -> DataFrame:
    """A price for each key."""
    prices = frame.sparkSession.range(KEYS).selectExpr("id as key", "id * 0.01D as price")
    return frame.join(F.broadcast(prices), "key").selectExpr("id", "key", "at", "value * price as value")


def windows(frame: DataFrame) -> DataFrame:
    """Count and mean of each key in each five seconds of event time."""
    late = frame.withWatermark("at", "5 seconds")
    made = late.groupBy(F.window("at", "5 seconds"), "key").agg(F.count("*").alias("n"), F.avg("value").alias("mean"))
    return made.select("key", F.col("window.start").alias("began"), "n", "mean")


WORK = {
    "same": FrameWork(same),
    "none": FrameWork(none),
    "sql": FrameWork(in_sql),
    "pandas": FrameWork(in_pandas),
    "join": FrameWork(joined),
    "windows": FrameWork(windows, "key long, began timestamp, n long, mean double", beside="none"),
}
