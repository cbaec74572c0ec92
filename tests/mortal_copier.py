"""From topic to topic, in a driver that dies by SIGKILL at a chosen step of a tick. Run by test_kafka.py as a process.

    python mortal_copier.py FOLDER SERVERS FROM TO STEP

STEP is one of mortal_driver.STEPS, or `none`: then it runs to the end of the topic.
"""

import sys

from flows import same
from mortal_driver import arm

from elastream import Topology, run, sinks, sources


def main() -> None:
    folder, servers, came, left, step = sys.argv[1:]
    arm(step, ticks=12)
    flow = Topology("mortal").source("in", sources.kafka(servers, came, "id long", end="latest", most_per_tick=150))
    flow.batch("work", same, after="in", replicas=2)
    flow.sink("out", sinks.kafka(servers, left), after="work", replicas=2)
    with run(flow, f"{folder}/base", master="local[4]") as handle:
        handle.await_end()


if __name__ == "__main__":
    main()
