"""`elastream bench state`: rescaling the state of an operator while tuples keep coming, every row counted before and after."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from elastream.connectors import sources
from elastream.errors import RunFailed
from elastream.settings import Settings, StateSettings
from elastream.topology import Topology
from elastream.workload import Arrivals
from elastream_lab.bench.common.isolate import busy_cores, run_part
from elastream_lab.bench.common.schedule import Part
from elastream_lab.bench.common.tables import table
from elastream_lab.bench.common.watch import tick_s, watched
from elastream_lab.bench.common.work import sink_nothing

GOAL_S = 15.0
"""The longest pause for a million keys from 4 to 8 partitions."""

LOAD_PER_S = 50_000.0
TRICKLE_PER_S = 500.0
"""How fast the keys come, and how fast tuples go on to come meanwhile."""


@dataclass(frozen=True)
class StateRescaled:
    """One rescale."""

    keys: int
    before: int
    after: int
    rows_before: int
    rows_after: int
    is_whole: bool
    """Rows and checksums are the same, and it was done."""
    pause_ms: float
    tick_ms: float
    """The median tick before it."""
    taken: int
    """What the operator has counted in the end, and what waits for it: as many as entered, or something is lost."""
    entered: int
    problems: int


@dataclass(frozen=True)
class StateBench:
    measured: StateRescaled
    cores: int
    busy_cores: float
    """What other processes used before it began: anything but about 0 makes the figure doubtful."""

    @property
    def met(self) -> bool:
        its = self.measured
        return its.is_whole and its.taken == its.entered and not its.problems and its.pause_ms <= GOAL_S * 1e3

    @property
    def verdicts(self) -> dict[str, Any]:
        return {"goal_s": GOAL_S, "met": self.met}

    def to_markdown(self) -> str:
        its = self.measured
        row = [
            f"{its.before} → {its.after}",
            f"{its.rows_before:,}",
            f"{its.rows_after:,}",
            "the same" if its.is_whole else "**not the same**",
            f"{its.pause_ms / 1e3:.1f}",
            f"{its.tick_ms:,.0f}",
        ]
        return "\n\n".join(
            [
                "# Rescaling state",
                f"`elastream bench state`: a count for each of {its.keys:,} keys, on {self.cores} cores, of which other processes "
                f"used {self.busy_cores:.1f}; {TRICKLE_PER_S:.0f} tuples/s keep coming.",
                table(["partitions", "rows before", "rows after", "checksum", "pause s", "tick before ms"], [row]),
                f"Counted or waiting in the end: {its.taken:,} of {its.entered:,} tuples. Goal: every row, a pause of at most "
                f"{GOAL_S:.0f} s; met: {'yes' if self.met else '**no**'}",
            ]
        )


def bench_state(quick: bool, say: Callable[[str], None]) -> StateBench:
    """Fill the state, rescale it."""
    busy, keys = round(busy_cores(), 2), 50_000 if quick else 1_000_000
    say(f"rescaling {keys:,} keys from 4 to 8 partitions")
    part = Part("state", "rescaling state", {"keys": keys, "before": 4, "after": 8}, 30 + 3 * keys / LOAD_PER_S)
    return StateBench(StateRescaled(**run_part(part)), os.cpu_count() or 1, busy)


def measure_state(keys: int, before: int, after: int) -> StateRescaled:
    """All keys come once, then tuples of some of them keep coming while the state is rescaled."""
    load_s = keys / LOAD_PER_S
    rest_s = 60.0 + keys / 10_000
    arrivals = Arrivals((0.0, load_s, load_s + rest_s), (0.0, keys, keys + rest_s * TRICKLE_PER_S))

    def make(numbers: Any) -> dict[str, Any]:
        return {"key": numbers % keys}

    def count(frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").count()

    flow = Topology("bench")
    flow.source("in", sources.replay(arrivals, "key long", make))
    flow.dataframe("count", count, after="in", schema="key long, count long", updates=True, replicas=2)
    flow.sink("last", sink_nothing, after="count", replicas=2)
    cores = os.cpu_count() or 1
    with watched(flow.build(), f"local[{cores},4]", Settings(state=StateSettings(partitions=before))) as run:
        totals = run.handle.totals
        run.wait(lambda: totals("count").processed >= keys, load_s * 10 + 120, "all keys to be counted")
        time.sleep(3.0)
        ticks = run.ticks[-10:]
        receipt = run.handle.rescale_state("count", after)
        if receipt.problem:
            raise RunFailed(f"bench: the state was not rescaled: {receipt.problem}")
        run.wait_for_ticks(len(run.ticks) + 5, 60)
        audit = run.stop()
        counted, entered = totals("count").processed, totals("in").processed
        waiting = run.handle.status.queued.get("count", 0)
    return StateRescaled(
        keys,
        receipt.before,
        receipt.after,
        sum(its.rows_before for its in receipt.stores),
        sum(its.rows_after for its in receipt.stores),
        bool(receipt.stores) and all(its.is_whole for its in receipt.stores),
        receipt.pause_ms,
        sorted(tick_s(ticks))[len(ticks) // 2 - 1] * 1e3,
        counted + waiting,
        entered,
        len(audit.problems),
    )
