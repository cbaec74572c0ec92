"""On a real standalone cluster: executors and workers die, come and go; every tuple arrives once."""

import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pyarrow.dataset as ds
import pytest
from flows import check_tallies, each_once, ids_in

from elastream.testing.spark_cluster import Cluster

SUPPORT = Path(__file__).parents[1] / "support"
FILE_ROWS = 20

MOST_AHEAD = 3
"""Files that wait to be read: each takes a micro-batch, whose length depends on the machine."""
PATIENCE_S = 120


class Driver:
    """A driver on the cluster, and what it tells."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        words = [sys.executable, str(SUPPORT / "cluster_driver.py"), cluster.master]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder, env=cluster.environment
        )
        self._told: Queue[str] = Queue()
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()

    def order(self, **words: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def until(self, told: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            answer: dict[str, Any] = json.loads(self._told.get(timeout=PATIENCE_S))
            assert "failed" not in answer, answer["failed"]
            if told(answer):
                return answer
        raise AssertionError(f"did not happen in time; the last that was told is {answer}")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._listening.join()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._told.put(line)
        self._told.put(json.dumps({"failed": f"the driver ended with {self._process.wait()}"}))


class Flow:
    """Files of ids that go in, a few at a time and as long as the story needs, and all that came out."""

    def __init__(self, driver: Driver, folder: Path) -> None:
        self._driver = driver
        self._folder = folder
        self._count = 0
        for name in ("in", "sink", "parquet"):
            (folder / name).mkdir()
        driver.order(run=str(folder))

    def feed_until(self, told: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """A file more whenever few are left to be read, until what is waited for is told."""

        def feed(answer: dict[str, Any]) -> object:
            if answer.get("finished", 0) < self._count - MOST_AHEAD * FILE_ROWS:
                return told(answer)
            ids = range(self._count, self._count + FILE_ROWS)
            self._count += FILE_ROWS
            new = self._folder / f"{self._count}.new"
            new.write_text("".join(json.dumps({"id": i}) + "\n" for i in ids))
            new.rename(self._folder / "in" / f"{self._count:06}.json")
            return told(answer)

        return self._driver.until(feed)

    def flows(self) -> None:
        """Tuples go in and come out."""
        first = self.feed_until(lambda tick: True)["finished"]
        self.feed_until(lambda tick: tick["finished"] > first + 2 * FILE_ROWS)

    def ends(self) -> None:
        """By the ids at both sinks, by what Spark's state has counted, and by the ledger."""
        self._driver.order(end=self._count)
        ended = self._driver.until(lambda answer: "ended" in answer)["ended"]
        assert ids_in(self._folder / "sink") == each_once(self._count)
        written = ds.dataset(self._folder / "parquet", format="parquet", partitioning="hive").to_table()
        assert Counter(written.column("id").to_pylist()) == each_once(self._count)
        check_tallies(str(self._folder / "base"), self._count)
        # Every tuple goes to two sinks and to the tally, where it becomes a part of a count.
        entered, finished, *others = ended
        assert entered == finished >= 3 * self._count and others == [0, 0, 0, []]


@pytest.fixture(scope="module")
def driver(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    driver = Driver(cluster, tmp_path_factory.mktemp("driver"))
    yield driver
    driver.close()


def test_executors_and_a_worker_that_die_come_and_go_in_mid_run_lose_and_double_nothing(
    driver: Driver, cluster: Cluster, tmp_path: Path
) -> None:
    flow = Flow(driver, tmp_path)
    flow.flows()
    cluster.kill_executor()
    flow.flows()
    flow.feed_until(lambda tick: tick["slots"] == 3)
    for total in (2, 3):
        driver.order(total=total)
        flow.feed_until(lambda tick: tick["slots"] == total)  # noqa: B023
        flow.flows()
    flow.feed_until(lambda tick: tick["machines"] == tick["hosts"] > 1)
    died_s = time.monotonic()
    cluster.kill_worker()
    # The policy places replicas by first fit; none stays where no host is.
    gone = flow.feed_until(lambda tick: tick["slots"] == 2 and tick["stray"] == 0)
    assert gone["at_s"] - died_s <= 3.0, f"replicas were on a dead machine for {gone['at_s'] - died_s:.1f} s"
    flow.flows()
    # A worker that comes back gets replicas again; other modules have this cluster, too.
    cluster.start_worker()
    flow.feed_until(lambda tick: tick["slots"] == 3 and tick["machines"] == tick["hosts"] > 1)
    flow.flows()
    flow.ends()


def test_what_executors_lack_is_said_before_the_stream_flows(driver: Driver) -> None:
    def refused(**lacking: str) -> str:
        driver.order(lacking=lacking)
        return str(driver.until(lambda answer: "refused" in answer)["refused"])

    # This path is another directory in every process.
    blind = "/proc/self/cwd/elastream"
    assert re.match(rf"base {blind}: machine \S+ does not see it; name one that all machines", refused(base=blind))
    assert re.match(rf"sink: machine \S+ does not see the driver's directory {blind}", refused(sink=blind))
    bare = str(Path(sys.base_prefix, "bin", "python3"))
    assert f"their Python, {bare}, does not have elastream" in refused(python=bare)
    assert "no /nowhere/python on their machines; set PYSPARK_PYTHON" in refused(python="/nowhere/python")
    assert re.match(r"base: on spark://\S+ name a directory that all its machines see", refused(base=""))
