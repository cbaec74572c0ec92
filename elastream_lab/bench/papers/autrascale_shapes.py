"""Topologies of the shape of AuTraScale's four workloads, for the simulator: operators and most replicas as in the paper.

Tuples are dealt out evenly, as the paper assumes. The simulated source only brings them in; the paper's source is an operator.
"""

import pyarrow as pa

from elastream.connectors import sources
from elastream.topology import Topology
from elastream.workload import Arrivals, constant

MOST = 40
"""P_max: replicas of an operator."""

WORDCOUNT = ("source", "flatmap", "count", "sink")
YAHOO = ("source", "filter", "project", "join", "window")
NEXMARK = ("source", "window")


def wordcount(arrivals: Arrivals | None = None) -> Topology:
    return _line("wordcount", WORDCOUNT, arrivals)


def yahoo(arrivals: Arrivals | None = None) -> Topology:
    """Figure 4. The last operator asks Redis."""
    return _line("yahoo", YAHOO, arrivals)


def nexmark_q5(arrivals: Arrivals | None = None) -> Topology:
    return _line("nexmark-q5", NEXMARK, arrivals)


def nexmark_q11(arrivals: Arrivals | None = None) -> Topology:
    return _line("nexmark-q11", NEXMARK, arrivals)


def _line(name: str, operators: tuple[str, ...], arrivals: Arrivals | None) -> Topology:
    flow = Topology(name)
    stream = flow.source("records", sources.replay(arrivals or constant(100, 60.0)))
    for operator in operators:
        stream = stream.batch(operator, _same, replicas=(1, MOST), schema="id long")
    stream.output("results")
    return flow


def _same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch
