"""Query 11 of Nexmark, user sessions: how many bids does a person make in one go?

`count` counts the bids of every bidder in sessions, which end when no bid has come from them for ten seconds; they are stored.
"""

from elastream.topology import Topology, parse_schema
from elastream.workload import Arrivals
from elastream_lab.apps.common.service import service, usual_arrivals
from elastream_lab.apps.nexmark.source import LENGTH_S, add_bids, add_window
from elastream_lab.apps.results.database import chosen_database, results_in
from elastream_lab.apps.results.table import Table

STORED = parse_schema("base string, bidder long, window_start timestamp, window_end timestamp, bids long")


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
    store = results_in(chosen_database(database, "nexmark-q11"), Table("sessions", STORED))
    app = Topology("nexmark-q11")
    bids = add_bids(app, arrivals or usual_arrivals(), "person")
    add_window(app, each, "count", bids, session_s=LENGTH_S)
    app.sink("store", each.of(store), after="count", **each.how)
    return app
