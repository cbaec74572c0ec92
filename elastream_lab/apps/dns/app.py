"""The DNS application of the PSPS paper (figure 13): which queries ask for names that an algorithm made?

Queries enter; each is parsed, measured, judged, and stored with its verdict.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.connectors import sources
from elastream.topology import Topology, parse_schema
from elastream.workload import Arrivals
from elastream_lab.apps.common.lazily import Lazily
from elastream_lab.apps.common.linear_model import LinearModel, most_likely
from elastream_lab.apps.common.service import service, usual_arrivals
from elastream_lab.apps.dns.features import FEATURES, Floats, name_features
from elastream_lab.apps.dns.model import dns_model
from elastream_lab.apps.dns.parsing import PARSED, parse_queries
from elastream_lab.apps.dns.payload import dns_payload
from elastream_lab.apps.results.database import chosen_database, results_in
from elastream_lab.apps.results.table import Table

INVALID = "invalid"

MEASURED = pa.schema(
    [*(field for field in PARSED if field.name != "label"), *(pa.field(name, pa.float64()) for name in FEATURES[1:])]
)
JUDGED = parse_schema("id long, client string, kind string, name string, domain string, verdict string, share double")


def topology(
    arrivals: Arrivals | None = None,
    *,
    payload: str | None = None,
    database: str | None = None,
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
    store = results_in(chosen_database(database, "dns"), Table("queries", JUDGED))
    measure, judge = Lazily(lambda: Measure(dns_model().bigrams)), Lazily(lambda: Judge(dns_model().verdict))
    app = Topology("dns")
    queries = app.source(
        "queries",
        sources.replay(arrivals, "id long, client string, kind string, name string", make),
    )
    parsed = queries.batch("parse", each.of(parse_queries), schema=PARSED, **each.how)
    measured = parsed.batch("features", each.of(measure), schema=MEASURED, **each.how)
    judged = measured.batch("classify", each.of(judge), schema=JUDGED, **each.how)
    judged.sink("store", each.of(store), **each.how)
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
