"""A run on a cluster whose executors follow the load: started by a test with a master and a folder, it prints what it saw."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flows import wait_for
from word_counts import check_emitted, count_words, counted, expected, word_of

from elastream import Guards, Topology, session, sources, start
from elastream.control import JournalEntry
from elastream.control.level_guards import Prices
from elastream.engine.driver.ports import Tick
from elastream.workload import steps

KEYS = 200
TABLE = """\
rows:
- {up_to: 60.0, replicas: {look: 2, count: 2}, seats: 3, hosts: 1, executors: 1}
- {up_to: 400.0, replicas: {look: 6, count: 3}, seats: 3, hosts: 3, executors: 3}
"""


def look(row: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.02)
    return row


def main() -> None:
    master, folder = sys.argv[1], Path(sys.argv[2])
    (folder / "table.yaml").write_text(TABLE)
    workload, count = steps([20, 200, 200, 200, 20, 20], 54.0), 5940
    spark = session(master, {"spark.cores.max": "3"})
    make: dict[str, Callable[[Any], Any]] = {
        "id": lambda numbers: numbers,
        "word": lambda numbers: [word_of(int(n), KEYS) for n in numbers],
    }
    flow = Topology("spike")
    flow.source(
        "in",
        sources.replay(
            workload, "id long, word string", lambda numbers: {name: of(numbers) for name, of in make.items()}
        ),
    )
    flow.map("look", look, after="in", replicas=(1, 8), waits=True)
    flow.key_by("word", after="look").process(
        "count", count_words, state="n long", initial={"n": 0}, schema="word string, n long", replicas=(1, 3)
    )
    flow.output("out", after="count")
    entries: list[JournalEntry] = []
    outputs: list[float] = []

    def tick(seen: Tick) -> None:
        if seen.result.latencies.count:
            outputs.append(seen.ended_s)

    guards = Guards(executors=(1, 3), prices=Prices(executor=0.5))
    policy = f"multi-level:table={folder / 'table.yaml'}"
    with start(flow, str(folder / "base"), spark=spark, policy=policy, td_s=1.0, guards=guards) as handle:
        handle.on_decision(entries.append)
        handle.subscribe(tick)
        assert handle.await_end(300)
        wait_for(lambda: handle.audit().queued == 0)
        right = counted(handle) == expected(count, KEYS)
        check_emitted(handle, expected(count, KEYS))
        audit = handle.audit()
    spark.stop()
    executors = [next(s for s in entry.observation.fleet if s.level.value == "executor") for entry in entries]
    told = {
        "there": [state.there for state in executors],
        "started_s": executors[-1].start_s,
        "decisions": [
            [d.level.value, d.before, d.after, d.words, d.cost_per_hour, entry.observation.ended_s]
            for entry in entries
            for d in entry.levels
            if d.changes
        ],
        "outputs": outputs,
        "audit": [audit.entered, audit.finished, audit.dropped, audit.duplicates, list(audit.problems)],
        "right": right,
        "count": count,
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
