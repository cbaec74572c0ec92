"""One part of the benchmark, in a process of its own: its name and arguments enter, one line of JSON leaves.

python -m elastream_lab.bench.common.parts NAME '{"argument": value}'
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from pyspark.sql import SparkSession

from elastream_lab.bench.common.plain import measure_plain
from elastream_lab.bench.connectors.frame_cost import measure_frame_cost, measure_plain_cost
from elastream_lab.bench.connectors.kafka_throughput import fill_topic, measure_elastream_kafka, measure_plain_kafka
from elastream_lab.bench.connectors.state import measure_state
from elastream_lab.bench.engine.busy import measure_busy
from elastream_lab.bench.engine.floor import measure_floor
from elastream_lab.bench.engine.footprint import measure_footprint
from elastream_lab.bench.engine.rescale import measure_rescale, measure_restart
from elastream_lab.bench.engine.start import measure_start
from elastream_lab.bench.engine.throughput import measure_sustained, measure_throughput
from elastream_lab.bench.engine.ticks import measure_ticks
from elastream_lab.bench.engine.tweets import measure_tweets
from elastream_lab.bench.keyed.redirection_runs import measure_skewed
from elastream_lab.bench.keyed.runs import (
    measure_keyed_rate,
    measure_keyed_restart,
    measure_keyed_story,
    measure_recovery,
    measure_spark_count,
)
from elastream_lab.bench.peers.own import measure_own
from elastream_lab.bench.platform.runs import find_machines, measure_platform

PARTS: dict[str, Callable[..., Any]] = {
    "floor": measure_floor,
    "ticks": measure_ticks,
    "throughput": measure_throughput,
    "sustained": measure_sustained,
    "plain": measure_plain,
    "rescale": measure_rescale,
    "busy": measure_busy,
    "start": measure_start,
    "tweets": measure_tweets,
    "restart": measure_restart,
    "footprint": measure_footprint,
    "kafka_fill": fill_topic,
    "kafka_plain": measure_plain_kafka,
    "kafka_elastream": measure_elastream_kafka,
    "frame_cost": measure_frame_cost,
    "plain_cost": measure_plain_cost,
    "state": measure_state,
    "keyed_rate": measure_keyed_rate,
    "spark_count": measure_spark_count,
    "keyed_story": measure_keyed_story,
    "recovery": measure_recovery,
    "keyed_restart": measure_keyed_restart,
    "skewed": measure_skewed,
    "find_machines": find_machines,
    "platform": measure_platform,
    "peers": measure_own,
}


def main(arguments: list[str]) -> int:
    for name, its in zip(arguments[::2], arguments[1::2], strict=True):
        print(json.dumps(asdict(PARTS[name](**json.loads(its)))), flush=True)
    session = SparkSession.getActiveSession()
    if session is not None:
        # The next process begins when this one has ended; the machine shall be free by then.
        session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
