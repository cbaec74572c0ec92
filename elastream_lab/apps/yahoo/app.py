"""The Yahoo streaming benchmark (AuTraScale, figure 4): how often is each campaign seen?

JSON documents enter; each is parsed, views are kept, an ad is joined with its campaign, the views of every campaign are counted
by ten seconds of event time, and the counts are stored. As in the benchmark a window is not closed: its count is stored
whenever it grows, so an event counts however late it comes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.connectors import sources
from elastream.topology import DUE, Topology, parse_schema
from elastream.workload import Arrivals
from elastream_lab.apps.common.service import service, usual_arrivals
from elastream_lab.apps.results.database import chosen_database, results_in
from elastream_lab.apps.results.table import Table
from elastream_lab.apps.yahoo.campaigns import campaigns_in
from elastream_lab.apps.yahoo.events import ad_events

WINDOW_US = 10_000_000

REMEMBERED_S = 3600.0
"""A window that has not grown for so long is forgotten; its count stays stored."""

PARSED = parse_schema("ad string, event string, at timestamp")
VIEWS = parse_schema("ad string, at timestamp")
JOINED = parse_schema("campaign string, window_start timestamp")
COUNTS = parse_schema("campaign string, window_start timestamp, views long")
STORED = parse_schema("base string, campaign string, window_start timestamp, views long")


def topology(
    arrivals: Arrivals | None = None,
    *,
    database: str | None = None,
    service_ms: float = 0.0,
    grouping: str = "shuffle",
    replicas: int = 4,
) -> Topology:
    """`database` is a file for SQLite, postgresql://user:password@host:port/name or redis://host:port/0.

    With Redis, as in the paper, the ads' campaigns are read from there, too. `service_ms` is added to the service of every tuple in every
    operator. `grouping` is the one in front of every operator but `count`.
    """
    each = service(grouping, replicas, service_ms)
    arrivals = arrivals or usual_arrivals()
    database = chosen_database(database, "yahoo")
    store = results_in(database, Table("campaign_views", STORED, greatest="views"))
    app = Topology("yahoo")
    events = app.source("events", sources.replay(arrivals, "id long, raw string", ad_events(arrivals)))
    parsed = events.batch("parse", each.of(parse_events), schema=PARSED, **each.how)
    views = parsed.batch("views", each.of(keep_views), schema=VIEWS, **each.how)
    joined = views.batch("join", each.of(JoinCampaigns(campaigns_in(database))), schema=JOINED, **each.how)
    counted = joined.key_by("campaign", "window_start").process(
        "count",
        each.of(count_views),
        state="total long",
        initial={"total": 0},
        ttl_s=REMEMBERED_S,
        schema=COUNTS,
        **each.sizes,
        mode="arrow",
    )
    counted.sink("store", each.of(store), **each.how)
    return app


class AdEvent(msgspec.Struct):
    """The parts of a document that are read; one that lacks them raises, and is set aside."""

    ad_id: str
    event_type: str
    event_time: str
    """Milliseconds since 1970."""


_DECODER = msgspec.json.Decoder(AdEvent)


def parse_events(batch: pa.RecordBatch) -> pa.RecordBatch:
    events = [_DECODER.decode(raw) for raw in batch.column("raw").to_pylist()]
    at = pa.array([int(event.event_time) * 1000 for event in events], pa.int64()).cast(PARSED.field("at").type)
    ads, kinds = ([getattr(event, name) for event in events] for name in ("ad_id", "event_type"))
    columns = [pa.array(ads, pa.string()), pa.array(kinds, pa.string()), at, batch.column(DUE)]
    return pa.RecordBatch.from_arrays(columns, names=[*PARSED.names, DUE])


def keep_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pc.equal(batch.column("event"), "view")).drop_columns(["event"])


@dataclass(frozen=True)
class JoinCampaigns:
    """Each view with its campaign and its window. A view of an ad that nobody knows is left out."""

    campaigns_of: Callable[[list[str]], list[str | None]]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ads = batch.column("ad").dictionary_encode()
        campaigns = pa.array(self.campaigns_of(ads.dictionary.to_pylist()), pa.string()).take(ads.indices)
        at_us = np.asarray(batch.column("at").cast(pa.int64()))
        starts = pa.array(at_us // WINDOW_US * WINDOW_US).cast(JOINED.field("window_start").type)
        joined = pa.RecordBatch.from_arrays([campaigns, starts, batch.column(DUE)], names=[*JOINED.names, DUE])
        return joined.filter(campaigns.is_valid())


def count_views(batch: pa.RecordBatch, known: pa.RecordBatch) -> tuple[pa.Table, pa.RecordBatch]:
    """The new counts of the windows that have grown, each due when the first of its views was."""
    key = ["campaign", "window_start"]
    grown = pa.Table.from_batches([batch]).group_by(key, use_threads=False).aggregate([([], "count_all"), (DUE, "min")])
    before = dict(zip(_places(known), known.column("total").to_pylist(), strict=True))
    new = grown.column("count_all").to_pylist()
    totals = pa.array([before[place] + more for place, more in zip(_places(grown), new, strict=True)], pa.int64())
    columns: list[Any] = [grown.column(name).combine_chunks() for name in key]
    counts = pa.Table.from_arrays([*columns, totals, grown.column(f"{DUE}_min")], names=[*COUNTS.names, DUE])
    return counts, pa.RecordBatch.from_arrays([*columns, totals], names=[*key, "total"])


def _places(rows: pa.RecordBatch | pa.Table) -> list[tuple[str, int]]:
    starts = rows.column("window_start").cast(pa.int64()).to_pylist()
    return list(zip(rows.column("campaign").to_pylist(), starts, strict=True))
