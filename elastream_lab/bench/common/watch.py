"""A run that is measured: four operators in a row, and the ticks they make."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from elastream.connectors import sources
from elastream.engine import Handle, start
from elastream.engine.driver.commit.merge import TickResult
from elastream.engine.driver.ports import Tick
from elastream.errors import RunFailed
from elastream.lanes import Audit
from elastream.settings import Settings
from elastream.topology import Graph, Topology
from elastream.workload import Arrivals

OPERATORS = ("first", "second", "third", "last")

Step = Callable[..., object]


def four_operators(
    arrivals: Arrivals,
    step: Step,
    sink: Step,
    *,
    replicas: int | tuple[int, int],
    kind: str = "batch",
    makers: int = 1,
) -> Graph:
    """Three operators of one kind and a sink, one after another, all with the same replicas."""
    topology = Topology("bench")
    stream = topology.source("in", sources.replay(arrivals), replicas=makers)
    for name in OPERATORS[:3]:
        stream = getattr(stream, kind)(name, step, replicas=replicas)
    stream.sink(OPERATORS[3], sink, replicas=replicas)
    return topology.build()


@dataclass(frozen=True)
class Watched:
    """A run, its ticks so far, and where it keeps its tuples."""

    handle: Handle
    ticks: list[Tick]
    base: Path

    def wait(self, until: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Until something holds; a run that ends or stands still before that is an error, not a figure."""
        deadline = time.monotonic() + timeout_s
        while not until():
            if not self.handle.active:
                self.handle.stop()
                if until():
                    return
                raise RunFailed(f"bench: the run ended before {what}, after {len(self.ticks)} ticks")
            if time.monotonic() > deadline:
                raise RunFailed(f"bench: expected {what} within {timeout_s:.0f} s, got {len(self.ticks)} ticks")
            time.sleep(0.05)

    def wait_for_ticks(self, count: int, timeout_s: float) -> None:
        self.wait(lambda: len(self.ticks) >= count, timeout_s, f"{count} ticks")

    def wait_past(self, second: float, timeout_s: float) -> None:
        """Until a tick ends after this second of the clock."""
        self.wait(lambda: bool(self.ticks) and self.ticks[-1].ended_s > second, timeout_s, "the ticks to be measured")

    def stop(self) -> Audit:
        """Stop at a tick boundary and check everything that is on disk."""
        self.handle.stop()
        return self.handle.audit()

    def origin_s(self) -> float:
        """When the replay began."""
        self.wait(lambda: bool(self.handle.status.sources.get("in")), 60, "the first tick")
        return float(self.handle.status.sources["in"]["origin_s"])


@contextmanager
def watched(
    graph: Graph, master: str | None = None, settings: Settings | None = None, *, keep: int = sys.maxsize
) -> Iterator[Watched]:
    """Run a graph on a base of its own, thrown away at the end. `keep`: how many of the newest ticks."""
    with TemporaryDirectory(prefix="elastream-bench-") as folder:
        base = Path(folder) / "base"
        ticks: list[Tick] = []

        def add(tick: Tick) -> None:
            ticks.append(_slim(tick))
            if len(ticks) > keep:
                del ticks[0]

        with start(graph, str(base), master=master, settings=settings, policy=None, listeners=[add]) as handle:
            yield Watched(handle, ticks, base)


def _slim(tick: Tick) -> Tick:
    """A tick without its receipts: thousands are kept, and memory that grows slows down what is measured."""
    return replace(tick, result=TickResult(counts=tick.result.counts, latencies=tick.result.latencies))


def finished(tick: Tick) -> int:
    """Tuples that reached the end of the fourth operator in this tick."""
    return tick.counts(OPERATORS[3]).finished


def tick_s(ticks: list[Tick]) -> list[float]:
    """The time between each commit and the one before it."""
    return [after.ended_s - before.ended_s for before, after in pairwise(ticks)]


def missing(audit: Audit) -> int:
    """Tuples that entered and are neither finished, nor dropped and counted, nor waiting."""
    return audit.entered - audit.finished - audit.dropped - audit.queued
