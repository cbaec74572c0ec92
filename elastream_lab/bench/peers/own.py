"""The workload on Elastream, on Spark in its local mode; in a process of its own (`elastream_lab.bench.common.parts`)."""

import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from elastream.connectors import sources
from elastream.engine import start
from elastream.engine.driver.ports import Tick
from elastream.topology import Graph, Topology
from elastream_lab.apps.common.service import grouping_of
from elastream_lab.bench.common.cpu import cpu_s
from elastream_lab.bench.engine.tweets_load import POOL, SERVICE_MS, tweet_arrivals
from elastream_lab.bench.peers.outputs import due_us
from elastream_lab.bench.peers.replicas import Change, add_change
from elastream_lab.bench.peers.watching import LATE_S

TEXT = " about what happens in the world today, by somebody who has something to say about it"
"""The same text as in the jobs of the other systems."""

_files = threading.local()
"""Every thread of a host writes to a file of its own."""


@dataclass(frozen=True)
class OwnRun:
    """A run on Elastream; the lines that it wrote are in its folder."""

    changes: tuple[Change, ...]
    cpu_s: float


def served(row: dict[str, Any]) -> dict[str, Any]:
    """Wait, as for a service elsewhere."""
    time.sleep(SERVICE_MS / 1e3)
    return row


@dataclass(frozen=True)
class Store:
    """Wait likewise, and write down each tuple that was served."""

    folder: str

    def __call__(self, batch: pa.RecordBatch, delivery: object) -> None:
        file = getattr(_files, "file", None)
        if file is None:
            file = _files.file = (Path(self.folder) / f"out-{uuid.uuid4()}").open("w", encoding="utf-8")
        for number, due in zip(batch["number"].to_pylist(), batch["due_us"].to_pylist(), strict=True):
            time.sleep(SERVICE_MS / 1e3)
            file.write(f"{number},{due},{time.time_ns() // 1000}\n")
            file.flush()


def tweets(folder: str, grouping: str, seconds: float) -> Graph:
    arrivals = tweet_arrivals(seconds)

    def make(numbers: Any) -> dict[str, Any]:
        first, stop = int(numbers[0]), int(numbers[-1]) + 1
        texts = np.char.add(np.char.add("tweet ", numbers.astype(str)), TEXT)
        return {"number": numbers, "due_us": due_us(arrivals, first, stop), "text": texts}

    how: dict[str, Any] = {"replicas": (1, POOL), "waits": True, "grouping": grouping_of(grouping)}
    app = Topology("tweets")
    app.source("tweets", sources.replay(arrivals, "number long, due_us long, text string", make))
    app.map("parse", served, after="tweets", **how)
    app.map("content", served, after="parse", **how)
    app.map("author", served, after="content", **how)
    app.sink("store", Store(folder), after="author", **how)
    return app.build()


def measure_own(folder: str, policy: str, grouping: str, seconds: float, td_s: float = 5.0) -> OwnRun:
    graph, changes = tweets(folder, grouping, seconds), list[Change]()

    def add(tick: Tick) -> None:
        add_change(changes, tick.ended_s, {o.name: tick.replicas[o.name] for o in graph.served})

    with start(graph, f"{folder}/base", policy=policy, td_s=td_s, listeners=[add]) as handle:
        handle.await_begin(60)
        while handle.active and not handle.status.sources.get("tweets"):
            handle.await_end(0.01)
        origin_s = float(handle.status.sources["tweets"]["origin_s"])
        (Path(folder) / "origin").write_text(str(int(origin_s * 1e6)), encoding="utf-8")
        before_s = cpu_s()
        ended = handle.await_end(max(0.0, origin_s + seconds - time.time()))
        used_s = cpu_s() - before_s
        if not ended:
            handle.await_end(LATE_S)
    return OwnRun(tuple((at_s - origin_s, replicas) for at_s, replicas in changes), used_s)
