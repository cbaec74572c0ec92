"""A driver that dies by SIGKILL at a chosen step of a tick. Run by test_kills.py as a process of its own.

    python mortal_driver.py FOLDER COUNT STEP

It starts Spark and then waits for a line on its standard input before it runs anything. FOLDER holds base/, sink/ and in/, with the
files of which half of the COUNT tuples come; the others are replayed. STEP is one of these or `none`.
A dataframe operator counts, in Spark's state, how many ids end in each digit.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from flows import files_by_delivery, ids_in, tally

from elastream import QueueSettings, Settings, Topology, groupings, sources, start
from elastream.connectors.query.query import EdgeQuery
from elastream.engine import session
from elastream.engine.driver.outbox import Outbox
from elastream.engine.driver.ports import Tick
from elastream.lanes import Ledger
from elastream.workload import constant

TICK_STEPS = (
    "after the works are sent",
    "in the works",
    "before the commit",
    "in the commit",
    "after the commit",
    "in the clean-up",
)
BATCH_STEPS = ("before the commit of a batch", "after the commit of a batch")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def after(ticks: int, original: Callable[..., Any], last_act: Callable[..., None]) -> Callable[..., Any]:
    """The original for some calls; at the next one, the last act, then the original if still alive."""
    calls = 0

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > ticks:
            last_act(*args, **kwargs)
        return original(*args, **kwargs)

    return wrapped


def arm(step: str, ticks: int) -> None:
    """Make the driver die at this step, some ticks from now."""
    send, commit, append, tidy, batch = (
        Outbox.send,
        Ledger.commit,
        Ledger._append,
        Ledger.tidy,
        EdgeQuery._commit,
    )

    def send_and_die(self: Outbox, dispatch: Any, *, rerouted: bool) -> None:
        send(self, dispatch, rerouted=rerouted)
        if dispatch.works:
            # The hosts have them now, and live on for a moment.
            die()

    def append_half(self: Ledger, record: bytes) -> None:
        assert self._file is not None
        self._file.write(record[: len(record) // 2])
        die()

    def commit_and_die(self: Ledger, entry: Any) -> None:
        commit(self, entry)
        die()

    def batch_and_die(*args: Any) -> None:
        # Spark has not written down yet that the batch is over.
        batch(*args)
        die()

    match step:
        case "after the works are sent":
            Outbox.send = after(ticks, send, send_and_die)  # type: ignore[method-assign]
        case "before the commit":
            Ledger.commit = after(ticks, commit, lambda *args: die())  # type: ignore[method-assign]
        case "in the commit":
            Ledger._append = after(ticks, append, append_half)  # type: ignore[method-assign]
        case "after the commit":
            Ledger.commit = after(ticks, commit, commit_and_die)  # type: ignore[method-assign]
        case "in the clean-up":
            Ledger.tidy = after(ticks, tidy, lambda *args: die())  # type: ignore[method-assign]
        case "before the commit of a batch":
            EdgeQuery._commit = after(2, batch, lambda *args: die())  # type: ignore[method-assign]
        case "after the commit of a batch":
            EdgeQuery._commit = after(2, batch, batch_and_die)  # type: ignore[method-assign]


def killer(order: Path, driver: int) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """An operator that kills the driver from within a host, once it is ordered to."""

    def work(batch: pa.RecordBatch) -> pa.RecordBatch:
        if order.exists() and order.read_text() == str(driver):
            os.kill(driver, signal.SIGKILL)
        return batch

    return work


def topology(folder: Path, count: int) -> Topology:
    flow = Topology("mortal")
    flow.source("made", sources.replay(constant(count // 2, 1)))
    flow.source("read", sources.json(str(folder / "in"), "id long", files_per_tick=1))
    flow.batch("a", killer(folder / "order", os.getpid()), after=["made", "read"], replicas=(1, 4), start=2)
    flow.map("b", lambda row: row, after="a", grouping=groupings.fields("id"), replicas=(1, 4), start=3)
    flow.dataframe("tally", tally, after="b", schema="digit long, count long", updates=True, replicas=2)
    flow.output("tallies", after="tally")
    flow.sink("end", files_by_delivery(folder / "sink"), after="b", replicas=(1, 4), start=2)
    return flow


def main() -> None:
    folder, count, step = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    arm(step, ticks=40)
    # All tuples are due at once and short lanes let them through a few at a time, so that the run lasts as many ticks as
    # the kills need, however long each takes.
    settings = Settings(queues=QueueSettings(q_size=400))
    spark = session("local[6]")
    if not sys.stdin.readline():
        return
    handle = start(topology(folder, count), str(folder / "base"), spark=spark, settings=settings, policy=None)

    def at_each_tick(tick: Tick) -> None:
        print(tick.number, flush=True)
        if step == "in the works" and len(seen) == 20:
            (folder / "order").write_text(str(os.getpid()))
        seen.append(tick.number)

    seen: list[int] = []
    handle.subscribe(at_each_tick)
    while handle.active and (
        sum(ids_in(folder / "sink").values()) < count or handle.status.totals["tally"].processed < count
    ):
        time.sleep(0.1)
    handle.stop()
    print("ended", flush=True)


if __name__ == "__main__":
    main()
