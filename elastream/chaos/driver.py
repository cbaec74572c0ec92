"""A driver in a process of its own, for chaos: runs the flow, says how far it is, and does to itself what it is told.

    python -m elastream.chaos.driver FOLDER MASTER PER_SECOND SECONDS EDGES

Says every moment, as lines of JSON: {"entry", "finished", "letters", "hosts": [pids], "jvm": pid}. Orders come as lines of JSON:

    {"cut": HOST}        the connection to a host ends
    {"clock": SECONDS}   the clock on the wall jumps
    {"storage": "slow" | "fails"}   the next entries take long to write, or cannot be written
    {"stop": true}       the run stops, and {"stopped": true} is said
"""

import errno
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from elastream.chaos.flow import chaos_flow
from elastream.engine import Handle, run, session
from elastream.lanes import Ledger
from elastream.settings import Settings

SLOW_S, SLOW_ENTRIES = 0.4, 6


def main() -> None:
    folder, master, per_second, seconds, edges = sys.argv[1:]
    spark = session(master if master != "local" else None)
    flow = chaos_flow(Path(folder), float(per_second), float(seconds), edges=edges == "edges")
    settings = Settings(work_timeout_s=3.0)
    handle = run(flow, f"{folder}/disk/base", spark=spark, settings=settings)
    gateway: Any = spark.sparkContext._gateway
    threading.Thread(target=_obey, args=(handle,), daemon=True).start()
    while handle.active:
        seats = list(handle._run.planner.roster.hosts.values())
        say(
            entry=handle.ledger.entry,
            finished=handle.totals("end").finished,
            letters=handle.totals("work").failed,
            hosts=[seat.pid for seat in seats if seat.pid],
            jvm=gateway.proc.pid,
        )
        time.sleep(0.2)
    try:
        handle.stop()
    finally:
        say(stopped=True)


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)  # noqa: T201 - this is how it speaks


def _obey(handle: Handle) -> None:
    for line in sys.stdin:
        for order, value in json.loads(line).items():
            if order == "cut":
                hosts: Any = handle._run.hosts
                handle._run.life.call(lambda: hosts._server.drop(value))  # noqa: B023 - done before the next order
            elif order == "clock":
                _step_clock(value)
            elif order == "storage":
                _hold_up_storage(fails=value == "fails")
            else:
                handle._run.life.stop()


def _step_clock(seconds: float) -> None:
    before = time.time
    time.time = lambda: before() + seconds


def _hold_up_storage(*, fails: bool) -> None:
    append, left = Ledger._append, [1 if fails else SLOW_ENTRIES]

    def held_up(self: Ledger, record: bytes) -> None:
        if left[0] > 0:
            left[0] -= 1
            if fails:
                raise OSError(errno.EIO, "Input/output error")
            time.sleep(SLOW_S)
        append(self, record)

    Ledger._append = held_up  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
