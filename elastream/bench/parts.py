"""One part of the benchmark, in a process of its own: its name and arguments enter, one line of JSON leaves.

python -m elastream.bench.parts NAME '{"argument": value}'
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from pyspark.sql import SparkSession

from elastream.bench.busy import measure_busy
from elastream.bench.floor import measure_floor
from elastream.bench.footprint import measure_footprint
from elastream.bench.frame_cost import measure_frame_cost, measure_plain_cost
from elastream.bench.kafka_throughput import fill_topic, measure_elastream_kafka, measure_plain_kafka
from elastream.bench.keyed_runs import (
    measure_keyed_rate,
    measure_keyed_restart,
    measure_keyed_story,
    measure_recovery,
    measure_spark_count,
)
from elastream.bench.peers.own import measure_own
from elastream.bench.plain import measure_plain
from elastream.bench.platform_runs import find_machines, measure_platform
from elastream.bench.redirection_runs import measure_skewed
from elastream.bench.rescale import measure_rescale, measure_restart
from elastream.bench.start import measure_start
from elastream.bench.state import measure_state
from elastream.bench.throughput import measure_sustained, measure_throughput
from elastream.bench.ticks import measure_ticks
from elastream.bench.tweets import measure_tweets

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
