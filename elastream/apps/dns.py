"""The DNS application of the PSPS paper (figure 13): which queries ask for names that an algorithm made?

Queries enter; each is parsed, measured, judged, and stored with its verdict.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.apps.database import results_in
from elastream.apps.dns_features import FEATURES, Floats, name_features
from elastream.apps.dns_model import dns_model
from elastream.apps.dns_parsing import PARSED, parse_queries
from elastream.apps.dns_payload import dns_payload
from elastream.apps.lazily import Lazily
from elastream.apps.linear_model import LinearModel, most_likely
from elastream.apps.results_table import Table
from elastream.apps.service import service, usual_arrivals
from elastream.engine.edges import sources
from elastream.topology import Topology, parse_schema
from elastream.workload import Arrivals

INVALID = "invalid"

MEASURED = pa.schema(
    [*(field for field in PARSED if field.name != "label"), *(pa.field(name, pa.float64()) for name in FEATURES[1:])]
)
JUDGED = parse_schema("id long, client string, kind string, name string, domain string, verdict string, share double")


def topology(
    arrivals: Arrivals | None = None,
    *,
    payload: str | None = None,
    database: str = "dns.sqlite",
    service_ms: float = 0.0,
    grouping: str = "shuffle",
    replicas: int = 3,
) -> Topology:
    """`payload` is a file of names, one a line or the column host of a .csv; without it they are generated.

    `database` is a file for SQLite, or postgresql://user:password@host:port/name. `service_ms` is added to the service
    of every tuple in every operator.
    """
    each = service(grouping, replicas, service_ms)
    arrivals = arrivals or usual_arrivals()
    make = dns_payload(payload, arrivals.keys)
    store = results_in(database, Table("queries", JUDGED))
    measure, judge = Lazily(lambda: Measure(dns_model().bigrams)), Lazily(lambda: Judge(dns_model().verdict))
    app = Topology("dns")
    app.source(
        "queries",
        sources.replay(arrivals, "id long, client string, kind string, name string", make),
    )
    app.batch("parse", each.of(parse_queries), after="queries", schema=PARSED, **each.how)
    app.batch("features", each.of(measure), after="parse", schema=MEASURED, **each.how)
    app.batch("classify", each.of(judge), after="features", schema=JUDGED, **each.how)
    app.sink("store", each.of(store), after="classify", **each.how)
    return app


@dataclass(frozen=True, eq=False)
class Measure:
    """Replaces the registered label by its features."""

    bigrams: Floats

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        features = name_features(batch.column("label"), np.asarray(batch.column("labels")), self.bigrams)
        batch = batch.drop_columns(["label"])
        for name in FEATURES[1:]:
            batch = batch.append_column(name, pa.array(features[name]))
        return batch


@dataclass(frozen=True)
class Judge:
    """Adds the verdict and how likely it is; of a name that breaks the rules, only that."""

    model: LinearModel

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        features = np.stack([np.asarray(batch.column(name)).astype(np.float64) for name in FEATURES], axis=1)
        verdicts, shares = most_likely(self.model.classes, self.model.scores(features))
        valid = batch.column("valid")
        verdicts, shares = pc.if_else(valid, verdicts, INVALID), pc.if_else(valid, shares, 1.0)
        return batch.select(JUDGED.names[:-2]).append_column("verdict", verdicts).append_column("share", shares)
