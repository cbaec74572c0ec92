"""On a real standalone cluster: executors follow a spike by decisions with reasons, and nothing is lost or doubled by it."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from elastream.testing.spark_cluster import Cluster

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.mark.slow
def test_executors_grow_with_a_spike_and_are_given_back_after_it(cluster: Cluster, tmp_path: Path) -> None:
    words = [sys.executable, str(SUPPORT / "fleet_driver.py"), cluster.master, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, env=cluster.environment, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])

    # The run begins with what Spark gives it; the load asks for one, the spike for three, and then for one again.
    there = [number for number, after in pairwise([*told["there"], 0]) if number != after]
    # How many of the three come while it lasts depends on the machine.
    assert there[-1] == 1 and max(there[there.index(1) :]) > 1, there
    changes = [decision for decision in told["decisions"] if decision[0] == "executor"]
    assert [(before, after) for _, before, after, *_ in changes] == [(3, 1), (1, 3), (3, 1)]
    assert [cost for *_, cost, _ in changes] == [-1.0, 1.0, -1.0]
    assert "is above 60/s, the upper threshold of what there is; one executor more is there in" in changes[1][3]
    assert re.search(
        r"is below \d+/s, the lower threshold of what there is; those that came last go first", changes[2][3]
    )
    assert told["started_s"] > 0.0

    count = told["count"]
    assert told["right"] and told["audit"] == [count, count, 0, 0, []]
    # Giving executors back holds nothing up: something comes out all the time.
    given_back_s = changes[2][5]
    around = [at_s for at_s in told["outputs"] if given_back_s - 1.0 <= at_s <= given_back_s + 4.0]
    assert len(around) > 10, around
