"""The demo's application: four operators whose tuples take milliseconds, as calls to other services do."""

import time
from typing import Any

import pyarrow as pa

from elastream.engine import Delivery, sources
from elastream.topology import Topology, groupings
from elastream.workload import Arrivals, load_trace

Row = dict[str, Any]

PAGES = ("news", "teams", "scores", "tickets", "history")


def topology(arrivals: Arrivals | None = None) -> Topology:
    """Requests to a web site on a match day: parsed, looked up, scored, stored."""
    arrivals = arrivals or load_trace("worldcup98_matchday", speed=720, scale=0.0004)
    app = Topology("match day")
    app.source("requests", sources.replay(arrivals))
    app.map("parse", parse, after="requests", schema="id long, page string", replicas=(1, 4))
    app.map("look up", look_up, after="parse", schema="id long, page string, size long", replicas=(1, 8))
    app.map(
        "score",
        score,
        after="look up",
        schema="id long, page string, points double",
        grouping=groupings.fields("page"),
        replicas=(1, 4),
    )
    app.sink("store", store, after="score", replicas=(1, 4))
    return app


def parse(row: Row) -> Row:
    time.sleep(0.0005)
    return {"id": row["id"], "page": PAGES[row["id"] % len(PAGES)]}


def look_up(row: Row) -> Row:
    time.sleep(0.005)
    return {**row, "size": len(row["page"]) * 100}


def score(row: Row) -> Row:
    time.sleep(0.001)
    return {"id": row["id"], "page": row["page"], "points": row["size"] / 7}


def store(batch: pa.RecordBatch, delivery: Delivery) -> None:
    time.sleep(0.0005 * batch.num_rows)
