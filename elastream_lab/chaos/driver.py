"""A driver in a process of its own, for chaos: runs a flow, says how far it is, and does to itself what it is told.

    python -m elastream_lab.chaos.driver SPEC

Says every moment, as lines of JSON: {"entry", "finished", "queued", "letters", "hosts": [pids], "jvm": pid}; `finished` are all that
left the run, also as dropped. Ends with exit code 0 when its sources are exhausted and nothing waits. Orders come as lines of JSON:

    {"cut": HOST}        the connection to a host ends
    {"clock": SECONDS}   the clock on the wall jumps
    {"storage": "slow" | "fails"}   the next entries take long to write, or cannot be written
    {"stop": true}       the run stops
"""

import errno
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from elastream.applications.load import load_app
from elastream.engine import Handle, session, start
from elastream.lanes import Ledger
from elastream.settings import Settings, WorkSettings
from elastream.topology import Graph, Topology
from elastream.workload import parse_workload
from elastream_lab.chaos.deliveries import with_recording_sinks
from elastream_lab.chaos.flow import chaos_flow
from elastream_lab.chaos.spec import RunSpec

SLOW_S, SLOW_ENTRIES = 0.4, 6


def main() -> None:
    spec = RunSpec.from_text(sys.argv[1])
    # A tuple of the flow that never returns is poison; one of an application may just be slow.
    settings = Settings(works=WorkSettings(timeout_s=3.0 if spec.app is None else None))
    flow = flow_of(spec)
    spark = session(spec.master if spec.master != "local" else None)
    handle = start(flow, f"{spec.folder}/disk/base", spark=spark, settings=settings, policy=None)
    gateway: Any = spark.sparkContext._gateway
    threading.Thread(target=_obey, args=(handle,), daemon=True).start()
    while handle.active:
        status = handle.status
        totals = status.totals.values()
        say(
            entry=status.entry,
            finished=sum(counts.finished + counts.dropped for counts in totals),
            queued=status.in_flight,
            letters=sum(counts.failed for counts in totals),
            hosts=[host.pid for host in status.hosts if host.pid],
            jvm=gateway.proc.pid,
        )
        time.sleep(0.2)
    handle.stop()


def flow_of(spec: RunSpec) -> Topology | Graph:
    if spec.app is None:
        return chaos_flow(spec)
    arrivals = parse_workload(spec.trace) if spec.trace is not None else None
    return with_recording_sinks(load_app(spec.app, arrivals, spec.options), Path(spec.folder) / "sink")


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)  # noqa: T201 - this is how it speaks


def _obey(handle: Handle) -> None:
    for line in sys.stdin:
        for order, value in json.loads(line).items():
            if order == "cut":
                hosts: Any = handle._run.hosts
                handle._run.life.post(lambda: hosts._server.drop(value))  # noqa: B023 - done before the next order
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
