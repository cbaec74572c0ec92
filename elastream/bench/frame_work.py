"""What the measured dataframe operators do. Plain functions of a DataFrame: both systems run the same."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.functions import pandas_udf  # type: ignore[attr-defined]

COLUMNS = "id long, key long, at timestamp, value double"

KEYS = 1000

BEGAN_US = 1_700_000_000_000_000


@dataclass(frozen=True)
class FrameWork:
    """A function and the columns that it gives."""

    function: Callable[[DataFrame], DataFrame]
    schema: str


def make_rows(numbers: Any, per_second: float) -> dict[str, Any]:
    """Tuples by their numbers, `per_second` of them in a second of event time."""
    at = BEGAN_US + (numbers * 1e6 / per_second).astype(np.int64)
    return {"id": numbers, "key": numbers % KEYS, "at": pd.to_datetime(at, unit="us", utc=True), "value": numbers * 0.5}


def rate_rows(frame: DataFrame, per_second: float) -> DataFrame:
    """The same of Spark's own source."""
    at = f"timestamp_micros({BEGAN_US} + cast(value * 1e6 / {per_second} as long))"
    return frame.selectExpr("value as id", f"value % {KEYS} as key", f"{at} as at", "value * 0.5D as value")


def same(frame: DataFrame) -> DataFrame:
    return frame


def in_sql(frame: DataFrame) -> DataFrame:
    """A digest, some arithmetic and a filter."""
    digest, gross = "sha2(concat_ws(':', id, key, value), 256) as digest", "round(value * 1.21, 2) as gross"
    return frame.where("id % 10 != 0").selectExpr("id", "key", digest, gross)


def in_pandas(frame: DataFrame) -> DataFrame:
    """A small model: a weighted sum of twenty features, and a logistic function."""
    weights = np.linspace(-1.0, 1.0, 20)

    @pandas_udf("double")  # type: ignore[untyped-decorator]
    def score(values: pd.Series) -> pd.Series:
        features = np.sin(values.to_numpy()[:, None] * np.arange(1, 21))
        return pd.Series(1.0 / (1.0 + np.exp(-features @ weights)))

    return frame.select("id", "key", score("value").alias("score"))


def joined(frame: DataFrame) -> DataFrame:
    """A table of names for the keys."""
    names = frame.sparkSession.range(KEYS).selectExpr("id as key", "concat('name of ', id) as name")
    return frame.join(F.broadcast(names), "key").select("id", "name", "value")


def windows(frame: DataFrame) -> DataFrame:
    """Count and mean of each key in each five seconds of event time."""
    late = frame.withWatermark("at", "5 seconds")
    made = late.groupBy(F.window("at", "5 seconds"), "key").agg(F.count("*").alias("n"), F.avg("value").alias("mean"))
    return made.select("key", F.col("window.start").alias("began"), "n", "mean")


WORK = {
    "same": FrameWork(same, COLUMNS),
    "sql": FrameWork(in_sql, "id long, key long, digest string, gross double"),
    "pandas": FrameWork(in_pandas, "id long, key long, score double"),
    "join": FrameWork(joined, "id long, name string, value double"),
    "windows": FrameWork(windows, "key long, began timestamp, n long, mean double"),
}
