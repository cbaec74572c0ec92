"""Query 5 of Nexmark, hot items: which auctions get the most bids?

`count` counts the bids of every auction in windows of ten seconds, one every five; `hottest` keeps of each window the auctions
with the most, all of them where several have as many; they are stored.
"""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from elastream.topology import Topology, parse_schema
from elastream.workload import Arrivals
from elastream_lab.apps.common.service import service, usual_arrivals
from elastream_lab.apps.nexmark.source import LENGTH_S, add_bids, add_window
from elastream_lab.apps.results.database import chosen_database, results_in
from elastream_lab.apps.results.table import Table

EVERY_S = 5.0

HOTTEST = parse_schema("window_start timestamp, window_end timestamp, auction long, bids long")
STORED = parse_schema("base string, window_start timestamp, window_end timestamp, auction long, bids long")
STATE: dict[str, Any] = {"state": "most long, auctions array<long>", "initial": {"most": 0}}


def topology(
    arrivals: Arrivals | None = None,
    *,
    database: str | None = None,
    service_ms: float = 0.0,
    replicas: int = 4,
) -> Topology:
    """`database` is a file for SQLite, or postgresql://user:password@host:port/name.

    `service_ms` is added to the service of every tuple in every operator.
    """
    each = service("shuffle", replicas, service_ms)
    store = results_in(chosen_database(database, "nexmark-q5"), Table("hot_items", STORED))
    app = Topology("nexmark-q5")
    bids = add_bids(app, arrivals or usual_arrivals(), "auction")
    add_window(app, each, "count", bids, every_s=EVERY_S, length_s=LENGTH_S)
    app.key_by("window_end", after="count").process(
        "hottest",
        each.of_key(keep_most),
        schema=HOTTEST,
        on_timer=give_most,
        event_time="window_end",
        **STATE,
        **each.sizes,
    )
    app.sink("store", each.of(store), after="hottest", **each.how)
    return app


def keep_most(window_end: dt.datetime, rows: list[dict[str, Any]], state: Any) -> list[dict[str, Any]]:
    """Of the counts of a window the greatest, and all auctions that have it."""
    most = max(state.most, *(row["bids"] for row in rows))
    before = state.auctions or [] if state.most == most else []
    state.most, state.auctions = most, [*before, *(row["auction"] for row in rows if row["bids"] == most)]
    # At the end itself some counts of the window may be on their way.
    state.wake_at_event(window_end + dt.timedelta(microseconds=1))
    return []


def give_most(window_end: dt.datetime, at_s: float, state: Any) -> Iterator[dict[str, Any]]:
    """All counts of a window have come."""
    times = {"window_start": window_end - dt.timedelta(seconds=LENGTH_S), "window_end": window_end}
    for auction in sorted(state.auctions):
        yield {**times, "auction": auction, "bids": state.most}
    state.remove()
