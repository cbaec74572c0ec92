"""The workload on Storm in its local mode, with a fixed number of replicas or a `rebalance` halfway."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elastream_lab.bench.engine.tweets_load import POOL, SERVICE_MS
from elastream_lab.bench.peers.flink import OPERATORS
from elastream_lab.bench.peers.processes import Java, Started, started
from elastream_lab.bench.peers.replicas import Replicas
from elastream_lab.bench.peers.systems import HALF, Row, classpath

HEAP_MB = 1024


class StormRun:
    """A topology that runs; `look` says how many replicas it has."""

    def __init__(self, storm: Started) -> None:
        self._storm = storm
        self.pids: tuple[int, ...] = (storm.pid,)

    def look(self) -> Replicas | None:
        self._storm.check()
        return parse_log(self._storm.log.read_text(encoding="utf-8", errors="replace"))


def parse_log(log: str) -> Replicas:
    """Replicas since the last `rebalance` that the log tells of."""
    told = [int(line.split(",")[2]) for line in log.splitlines() if line.startswith("rescaled,")]
    return dict.fromkeys(OPERATORS, told[-1] if told else HALF)


@contextmanager
def storm_run(row: Row, peers: Path, folder: Path, seconds: float) -> Iterator[StormRun]:
    halfway = row.settings.get("rebalance") == "halfway"
    own = [f"{key}={value}" for key, value in row.settings.items() if key != "rebalance"]
    words = [str(folder), f"{SERVICE_MS:.0f}", str(HALF), str(POOL), str(seconds / 2 if halfway else 0), *own]
    with started(Java("storm", classpath(peers, "storm"), "StormTweets", HEAP_MB, words), folder) as storm:
        yield StormRun(storm)
