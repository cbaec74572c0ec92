"""From topic to topic, in a driver that dies by SIGKILL with a delivery written and not committed. Run by test_kafka_failures.py as a process.

    python mortal_copier.py FOLDER SERVERS FROM TO STEP

STEP is `before the commit of a delivery`, or `none`: then it runs to the end of the topic.
"""

import sys

from flows import same
from mortal_driver import die

from elastream import Topology, sinks, sources, start
from elastream.lanes import Entry, Ledger


def arm() -> None:
    """Die when the second delivery is written and not committed."""
    commit, written = Ledger.commit, 0

    def commit_or_die(self: Ledger, entry: Entry) -> None:
        nonlocal written
        written += "out" in entry.counts and entry.counts["out"].finished > 0
        if written == 2:
            die()
        commit(self, entry)

    Ledger.commit = commit_or_die  # type: ignore[method-assign]


def main() -> None:
    folder, servers, came, left, step = sys.argv[1:]
    if step == "before the commit of a delivery":
        arm()
    flow = Topology("mortal")
    flow.source("in", sources.kafka(servers, came, "id long", end="latest", most_per_tick=150))
    flow.batch("work", same, after="in", replicas=2)
    flow.sink("out", sinks.kafka(servers, left), after="work", replicas=2)
    with start(flow, f"{folder}/base", master="local[4]", policy=None) as handle:
        handle.await_end()


if __name__ == "__main__":
    main()
