"""The source of Nexmark's queries and windows of its bids, declared in an application."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from elastream.connectors import sources
from elastream.topology import DUE, Topology, parse_schema
from elastream.topology.windows import windows_of
from elastream.workload import Arrivals
from elastream_lab.apps.common.service import Service
from elastream_lab.apps.nexmark.events import EVENTS, Nexmark

BIDS = "bids"
LENGTH_S = 10.0
"""Of windows, and of the pause that ends a session: as in the benchmark."""

LATENESS_S = 1.0
"""Bids come in order; so much is for what a rescale may turn round."""


@dataclass(frozen=True)
class BidsBy:
    """Of events, the bids: when each was made, and by the key that a query tells them apart by."""

    key: str

    @property
    def schema(self) -> pa.Schema:
        return parse_schema(f"{self.name} long, at timestamp")

    @property
    def name(self) -> str:
        return "bidder" if self.key == "person" else self.key

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        bids = batch.filter(pc.equal(batch.column("kind"), "bid"))
        columns = [bids.column(self.key), bids.column("at"), bids.column(DUE)]
        return pa.RecordBatch.from_arrays(columns, names=[self.name, "at", DUE])


def add_bids(app: Topology, arrivals: Arrivals, key: str) -> BidsBy:
    """Declare the source and an operator that takes the bids out of it.

    That one runs inside the source's work, so bids stay in order up to their window.
    """
    bids = BidsBy(key)
    app.source("events", sources.replay(arrivals, EVENTS, Nexmark(arrivals, key)))
    app.batch(BIDS, bids, after="events", schema=bids.schema, chain=True)
    return bids


def add_window(app: Topology, each: Service, name: str, bids: BidsBy, **window: Any) -> pa.Schema:
    """Declare `Topology.window` of the bids, served as other operators are; the columns that leave it."""
    lengths = {"every_s": None, "length_s": None, "session_s": None}
    made = windows_of(name, (bids.name,), "at", bids.schema, **{**lengths, **window}, aggregate={"bids": "count()"})
    schema = made.schema(bids.schema)
    app.key_by(bids.name, after=BIDS).process(
        name,
        each.of_key(made.add),
        state=made.state,
        schema=schema,
        on_timer=made.close,
        event_time="at",
        lateness_s=LATENESS_S,
        drop_late=True,
        **each.sizes,
    )
    return schema
