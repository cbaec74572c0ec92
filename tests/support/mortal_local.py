"""A driver without Spark, whose hosts are processes of their own. Run by test_kills_local.py, which kills it and them.

    python mortal_local.py FOLDER COUNT [STEP]

With STEP, one of those of `mortal_driver`, it kills itself at that step of a tick.

It prints the pids of its hosts whenever they change, and `ended` when every tuple has arrived. The file `moves` has a line per
rescale of the keyed count that is over: how many key groups changed hands.
"""

import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from flows import files_by_delivery
from mortal_driver import arm, killer

from elastream import Topology, groupings, sources
from elastream.testing import LocalEngine
from elastream.workload import constant

DIGITS = 50


def slow(row: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.001)
    return row


def with_digit(row: dict[str, Any]) -> dict[str, Any]:
    return {"id": row["id"], "digit": row["id"] % DIGITS}


def tallied(key: int, rows: list[dict[str, Any]], state: Any) -> list[dict[str, Any]]:
    state.n += len(rows)
    return [{"id": state.n, "digit": key}]


def main() -> None:
    folder, count, step = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "none"
    arm(step, ticks=40)
    ordered = folder / "order"
    # All tuples are due at once: how long the run takes is for the operators to say.
    flow = Topology("mortal")
    flow.source("in", sources.replay(constant(count, 1)), replicas=2)
    flow.map("a", slow, after="in", replicas=(1, 4), start=2)
    flow.batch("kill", killer(ordered, os.getpid()), after="a", chain=True)
    flow.map("b", with_digit, after="kill", schema="id long, digit long", grouping=groupings.fields("id"), replicas=3)
    flow.sink("end", files_by_delivery(folder / "sink"), after="b", replicas=2)
    flow.output("out", after="b")
    flow.key_by("digit", after="b").process(
        "tally", tallied, state="n long", initial={"n": 0}, replicas=(1, 4), start=2
    )
    flow.output("tallies", after="tally")
    with LocalEngine(processes=True).start(flow, str(folder / "base")) as handle:
        told: list[int] = []
        moved = 0
        moments = random.Random(count)
        while not handle.await_end(0.05):
            handle.scale("tally", moments.randint(1, 4))
            for move in handle.state_moves[moved:]:
                moved += 1
                with open(folder / "moves", "a", encoding="utf-8") as file:
                    file.write(f"{move.groups}\n")
            pids = sorted(host.pid for host in handle.status.hosts)
            if pids != told and handle.totals("end").finished:
                told = pids
                print(*pids, flush=True)
                if step == "in the works":
                    ordered.write_text(str(os.getpid()))
    print("ended", flush=True)


if __name__ == "__main__":
    main()
