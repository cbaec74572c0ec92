"""Topologies of the shape of Dr-Stream's two applications, for the simulator: operators, instances and groupings as in the paper."""

from typing import Any

import pyarrow as pa

from elastream.connectors import sources
from elastream.topology import Topology, groupings
from elastream.topology.groupings import Grouping
from elastream.workload import Arrivals, constant

POOL = 4
"""An operator may grow to so many times the instances that it begins with."""


def top_n(arrivals: Arrivals | None = None, grouping: str = "fields") -> Topology:
    """Figure 17: reader 20, count 20, rank 16, merge 8."""
    even, by_word = _groupings(grouping)
    flow = Topology("top-n")
    flow.source("words", sources.replay(arrivals or constant(1000, 60.0)))
    _stateless(flow, "reader", "words", 20, even)
    _keyed(flow, "count", "reader", 20, by_word)
    _keyed(flow, "rank", "count", 16, by_word)
    _stateless(flow, "merge", "rank", 8, groupings.global_)
    flow.output("top", after="merge")
    return flow


def wordcount(arrivals: Arrivals | None = None, grouping: str = "fields") -> Topology:
    """Figure 18: reader 30, split 30, count 20."""
    even, by_word = _groupings(grouping)
    flow = Topology("wordcount")
    flow.source("sentences", sources.replay(arrivals or constant(1000, 60.0)))
    _stateless(flow, "reader", "sentences", 30, even)
    _stateless(flow, "split", "reader", 30, even)
    _keyed(flow, "count", "split", 20, by_word)
    flow.output("counts", after="count")
    return flow


def _groupings(name: str) -> tuple[Grouping, Grouping]:
    if name == "redirection":
        return groupings.redirection(), groupings.redirection("id")
    return groupings.shuffle, groupings.fields("id")


def _stateless(flow: Topology, name: str, after: str, instances: int, grouping: Grouping) -> None:
    flow.batch(
        name, _same, after=after, grouping=grouping, replicas=(1, POOL * instances), start=instances, schema="id long"
    )


def _keyed(flow: Topology, name: str, after: str, instances: int, grouping: Grouping) -> None:
    most = min(128, POOL * instances)
    redirect = grouping.redirects
    flow.key_by("id", redirect=redirect, after=after).process(
        name,
        _count,
        state="n long",
        initial={"n": 0},
        replicas=(1, most),
        start=instances,
        schema="id long",
        merge=_add if redirect else None,
    )


def _same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def _count(key: Any, rows: list[dict[str, Any]], state: Any) -> list[dict[str, Any]]:
    state.n += len(rows)
    return rows


def _add(key: Any, part: Any, state: Any) -> list[dict[str, Any]]:
    state.n += part.n
    return []
