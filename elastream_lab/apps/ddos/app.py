"""Detection of denial-of-service attacks, of the multi-level elasticity paper (figure 7): in which minutes is a network attacked?

Flow records enter as lines; `parse` reads them, aggregators count them by source, destination, port and protocol in windows of event
time, `assemble` makes one vector of each window, `analyze` compares it with what is normal, and verdicts are stored.

It is a lambda architecture: a batch job on Spark learns from the past what is normal (`flow_learning`, `elastream learn ddos`), the
stream applies it. The lines are a log that is replayed as fast as the workload says, faster than it was written. So what replicas of
`parse` bring out of order within `MIXED_S` seconds of a run may be minutes of the log: windows wait for that.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream.connectors import sources
from elastream.topology import DUE, Topology, parse_schema
from elastream.workload import Arrivals, daily
from elastream_lab.apps.common.lazily import Lazily
from elastream_lab.apps.common.service import service
from elastream_lab.apps.ddos.detection import detection
from elastream_lab.apps.ddos.features import DIMENSIONS, FEATURES
from elastream_lab.apps.ddos.learning import WINDOW_S, generated_model
from elastream_lab.apps.ddos.parsing import FLOW, parse_flows
from elastream_lab.apps.ddos.payload import flow_payload
from elastream_lab.apps.ddos.subspace_model import SubspaceModel, read_model
from elastream_lab.apps.ddos.windows import COUNTED, GATHERED, VECTOR, aggregator, assemble, gather
from elastream_lab.apps.results.database import chosen_database, results_in
from elastream_lab.apps.results.table import Rows, Table

STORED = parse_schema(
    "base string, window_start timestamp, flows long, score double, flagged boolean, label string, target string"
)
VERDICT = pa.schema([field for field in STORED if field.name != "base"])

MIXED_S = 5.0
"""How far replicas may be apart, in seconds of a run, before flows are late and dropped."""


def topology(
    arrivals: Arrivals | None = None,
    *,
    payload: str | None = None,
    model: str | None = None,
    database: str | None = None,
    service_ms: float = 0.0,
    grouping: str = "shuffle",
    replicas: int = 4,
) -> Topology:
    """`payload` is a CSV file of flow records; without it they are generated, with attacks. `model` is what `elastream learn` wrote.

    `database` is a file for SQLite, or postgresql://user:password@host:port/name. `service_ms` is added to the service
    of every tuple in every operator. `grouping` is the one in front of `parse`, `analyze` and `store`.
    """
    each = service(grouping, replicas, service_ms)
    arrivals = arrivals or daily(400.0, 120.0)
    make = flow_payload(payload)
    learned = None if model is None else read_model(model)
    window_s = WINDOW_S if learned is None else learned.window_s
    lateness_s = max(float(window_s), MIXED_S * arrivals.peak_per_s / make.per_s)
    analyze = Lazily(lambda: Analyze(learned or generated_model()))
    store = results_in(chosen_database(database, "ddos"), Table("windows", STORED, remark=how_well))
    app = Topology("ddos")
    app.source("flows", sources.replay(arrivals, "id long, raw string", make))
    app.batch("parse", each.of(parse_flows), after="flows", schema=FLOW, **each.how)
    for by in DIMENSIONS:
        counting = aggregator(by, window_s)
        app.key_by(by, after="parse").process(
            f"by-{by}",
            each.of_key(counting.add),
            state=counting.windows.state,
            schema=COUNTED,
            on_timer=counting.close,
            event_time="at",
            lateness_s=lateness_s,
            drop_late=True,
            **each.sizes,
        )
    app.key_by("window_start", after=[f"by-{by}" for by in DIMENSIONS]).process(
        "assemble",
        each.of_key(gather),
        state=GATHERED,
        schema=VECTOR,
        on_timer=assemble,
        event_time="counted_at",
        **each.sizes,
    )
    app.batch("analyze", each.of(analyze), after="assemble", schema=VERDICT, **each.how)
    app.sink("store", each.of(store), after="analyze", **each.how)
    return app


@dataclass(frozen=True, eq=False)
class Analyze:
    """Judges windows by what is normal. The target of one that is flagged is the destination with the most flows."""

    model: SubspaceModel

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        features = np.asarray(pc.list_flatten(batch.column("features")), np.float64).reshape(-1, len(FEATURES))
        scores = self.model.scores(features)
        flagged = pa.array(scores > 1.0)
        columns = {
            "score": pa.array(scores),
            "flagged": flagged,
            "target": pc.if_else(flagged, batch.column("target"), ""),
        }
        names = [*VERDICT.names, *(name for name in batch.schema.names if name == DUE)]
        return pa.RecordBatch.from_arrays(
            [columns[name] if name in columns else batch.column(name) for name in names], names=names
        )


def how_well(rows: Rows) -> str:
    """In words, of all windows in the table; without labels only how many were flagged."""
    flagged, label = STORED.names.index("flagged"), STORED.names.index("label")
    found = detection((row[flagged], row[label]) for row in rows)
    return str(found) if found.attacked else f"{found.windows} windows, {found.flagged} flagged; none is labelled"
