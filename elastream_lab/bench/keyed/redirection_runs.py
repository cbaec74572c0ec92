"""Skewed keys measured: by `fields`, by `redirection`, and with heavy keys split, on the same tuples."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.compute as pc

from elastream.connectors import sources
from elastream.control import Observation, Policy, Proposal
from elastream.control.load import LevelLoad, lane_ratios
from elastream.engine import start
from elastream.engine.driver.ports import Tick
from elastream.errors import RunFailed
from elastream.report.latency import Latencies
from elastream.topology import Graph, Topology
from elastream.workload import constant
from elastream_lab.bench.common.work import sink_nothing

KEYS, ZIPF = 10_000, 1.5
REPLICAS = 8
SERVICE_S = 0.005
TD_S = 1.0
TABLE = 1 << 20
"""Keys are drawn once, and come again in the same order."""


@dataclass(frozen=True)
class Skewed:
    """One way to share the tuples of skewed keys out among replicas."""

    way: str
    """`fields`, `redirection` or `split`."""
    offered_per_s: float
    finished_per_s: float
    latency_mean_ms: float
    latency_p95_ms: float
    lb_mean: float
    """The load balance of the replicas, over the measured time."""
    ratio_max: float
    redirections: int
    same: bool
    """Every tuple was counted once."""


class LoadWatch(Policy):
    """A policy that decides nothing, and remembers how loaded the replicas of one operator were."""

    name = "watch"

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self.levels: list[LevelLoad] = []
        self.redirections = 0

    def propose(self, observation: Observation) -> Proposal:
        self.levels.append(LevelLoad(tuple(lane_ratios(observation.operators[self._operator]))))
        self.redirections += len(observation.redirections)
        return Proposal()


def count_slowly(key: int, rows: list[dict[str, Any]], state: Any) -> Iterator[dict[str, Any]]:
    """A count that waits for a service elsewhere, for every tuple."""
    time.sleep(SERVICE_S * len(rows))
    state.n += len(rows)
    yield {"key": key, "n": state.n}


def add_part(key: int, part: Any, state: Any) -> Iterator[dict[str, Any]]:
    state.n += part.n
    yield {"key": key, "n": state.n}


def skewed_keys(seed: int = 7) -> "np.ndarray[Any, Any]":
    shares = np.power(np.arange(1.0, KEYS + 1), -ZIPF)
    return np.random.default_rng(seed).choice(KEYS, TABLE, p=shares / shares.sum())


def skewed(per_s: float, seconds: float, way: str) -> Graph:
    keys = skewed_keys()

    def make(numbers: Any) -> dict[str, Any]:
        return {"key": keys[np.asarray(numbers) % TABLE]}

    flow = Topology("skewed")
    flow.source("in", sources.replay(constant(per_s, seconds), "key long", make))
    flow.key_by("key", redirect=way != "fields", after="in").process(
        "count",
        count_slowly,
        state="n long",
        initial={"n": 0},
        schema="key long, n long",
        replicas=REPLICAS,
        waits=True,
        merge=add_part if way == "split" else None,
    )
    flow.sink("last", sink_nothing, after="count")
    return flow.build()


def measure_skewed(way: str, offered_per_s: float, settle_s: float, seconds: float) -> Skewed:
    """After `settle_s`, over `seconds`; then everything is served and counted again."""
    graph, watch = skewed(offered_per_s, settle_s + seconds, way), LoadWatch("count")
    latencies, finished = Latencies(), [0]

    def add(tick: Tick) -> None:
        latencies.merge(tick.result.latencies)
        finished[0] += tick.counts("count").processed

    with (
        TemporaryDirectory(prefix="elastream-bench-") as folder,
        start(graph, f"{folder}/base", policy=watch, td_s=TD_S, benchmark_s=0) as handle,
    ):
        handle.await_begin(60)
        time.sleep(settle_s)
        handle.subscribe(add)
        watch.levels.clear()
        began = time.monotonic()
        time.sleep(seconds)
        took, done, levels = time.monotonic() - began, finished[0], list(watch.levels)
        mean_ms, p95_ms = latencies.mean_s * 1e3, latencies.percentile_s(0.95) * 1e3
        if not handle.await_end(10 * (settle_s + seconds) + 60):
            raise RunFailed("bench: the stream did not end")
        counted = int(pc.sum(handle.state("count").column("n")).as_py())
        same = counted == handle.totals("in").processed and not handle.audit().problems
    lb = sum(level.lb for level in levels) / len(levels)
    most = max(level.most for level in levels)
    return Skewed(way, offered_per_s, done / took, mean_ms, p95_ms, lb, most, watch.redirections, same)
