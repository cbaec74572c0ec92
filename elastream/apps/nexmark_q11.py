"""Query 11 of Nexmark, user sessions: how many bids does a person make in one go?

`count` counts the bids of every bidder in sessions, which end when no bid has come from them for ten seconds; they are stored.
"""

from elastream.apps.database import results_in
from elastream.apps.nexmark import LENGTH_S, add_bids, add_window
from elastream.apps.results_table import Table
from elastream.apps.service import service, usual_arrivals
from elastream.topology import Topology, parse_schema
from elastream.workload import Arrivals

STORED = parse_schema("base string, bidder long, window_start timestamp, window_end timestamp, bids long")


def topology(
    arrivals: Arrivals | None = None,
    *,
    database: str = "nexmark-q11.sqlite",
    service_ms: float = 0.0,
    replicas: int = 4,
) -> Topology:
    """`database` is a file for SQLite, or postgresql://user:password@host:port/name.

    `service_ms` is added to the service of every tuple in every operator.
    """
    each = service("shuffle", replicas, service_ms)
    store = results_in(database, Table("sessions", STORED))
    app = Topology("nexmark-q11")
    bids = add_bids(app, arrivals or usual_arrivals(), "person")
    add_window(app, each, "count", bids, session_s=LENGTH_S)
    app.sink("store", each.of(store), after="count", **each.how)
    return app
