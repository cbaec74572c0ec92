"""DataFrames as operators: a join with a table, SQL, and counts by window whose state is rescaled while it flows.

    python examples/03_dataframe_and_state.py [BASE_DIR]

Ten thousand clicks, a second of event time apart, come in ten seconds. Each gets the name of its country from a table; the
clicks of a country in ten minutes are counted, and given once the watermark, an hour behind, says that no more of them come:
replicas are not all equally far, so a watermark must leave them time. With the same BASE_DIR it goes on where it was.
"""

import sys
import time

import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from elastream import Settings, StateSettings, Topology, groupings, sources, start, workload

COUNTRIES = ["Chile", "Peru", "Brazil", "Uruguay"]


def clicks(numbers):
    return {"id": numbers, "code": numbers % len(COUNTRIES), "at": pd.to_datetime(numbers, unit="s", utc=True)}


def enrich(frame):
    """A join with a static table. `_due` is kept, so that latency is counted from when a click was due."""
    names = frame.sparkSession.createDataFrame(list(enumerate(COUNTRIES)), "code long, country string")
    return frame.join(F.broadcast(names), "code").where("id % 10 != 0").select("id", "country", "at", "_due")


def in_ten_minutes(frame):
    """State: Spark keeps the counts that are not final."""
    window = F.window("at", "10 minutes")
    counts = frame.withWatermark("at", "1 hour").groupBy(window, "country").agg(F.count("*").alias("clicks"))
    return counts.select("country", F.col("window.start").alias("began"), "clicks")


def application():
    app = Topology("countries")
    arrivals = workload.constant(1000, seconds=10)
    source = app.source("clicks", sources.replay(arrivals, "id long, code long, at timestamp", clicks))
    named = source.dataframe("enrich", enrich, schema="id long, country string, at timestamp", replicas=(1, 4))
    counts = named.dataframe(
        "count",
        in_ten_minutes,
        schema="country string, began timestamp, clicks long",
        grouping=groupings.fields("country"),
        replicas=(1, 4),
    )
    counts.output("counts")
    return app


if __name__ == "__main__":
    with start(
        application(), *sys.argv[1:], settings=Settings(state=StateSettings(partitions=2)), policy=None
    ) as handle:
        while not handle.observe(10).operators["count"].processed:
            time.sleep(0.1)
        handle.scale("enrich", 2)
        receipt = handle.rescale_state("count", 4)
        print(
            f"state: {receipt.before} -> {receipt.after} partitions, {receipt.pause_ms:.0f} ms, {receipt.problem or 'whole'}"
        )
        handle.await_end()
        print(handle.audit())
        counts = handle.output("counts").to_pandas()
        print(f"{len(counts)} counts of {counts['clicks'].sum()} clicks are final")
