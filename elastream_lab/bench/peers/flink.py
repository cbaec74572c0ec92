"""The workload on Flink in its local mode, sized by the adaptive scheduler and Flink's autoscaler."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from elastream.errors import RunFailed
from elastream.testing.ports import free_ports
from elastream_lab.bench.engine.tweets_load import SERVICE_MS
from elastream_lab.bench.peers.processes import Java, Started, started
from elastream_lab.bench.peers.replicas import Replicas
from elastream_lab.bench.peers.systems import Row, classpath

START_S = 60.0
HEAP_MB = 1024
AUTOSCALER_HEAP_MB = 256
OPERATORS = ("parse", "content", "author", "store")


class FlinkRun:
    """A job that runs; `look` says how many replicas it has."""

    def __init__(self, flink: Started, autoscaler: Started, address: str, job: str) -> None:
        self._flink, self._autoscaler = flink, autoscaler
        self._address, self._job = address, job
        self.pids: tuple[int, ...] = (flink.pid, autoscaler.pid)

    def look(self) -> Replicas | None:
        """None while the job restarts, or when Flink is too busy to answer."""
        self._flink.check()
        self._autoscaler.check()
        try:
            return parse_job(_get(f"{self._address}/jobs/{self._job}"))
        except OSError:
            return None


def parse_job(job: dict[str, Any]) -> Replicas | None:
    """Flink's answer about a job: replicas by operator when it runs."""
    if job["state"] != "RUNNING":
        return None
    found = {vertex["name"]: int(vertex["parallelism"]) for vertex in job["vertices"] if vertex["name"] in OPERATORS}
    return found if len(found) == len(OPERATORS) else None


@contextmanager
def flink_run(row: Row, peers: Path, folder: Path) -> Iterator[FlinkRun]:
    """Started with one replica of each operator."""
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    settings = {
        **row.settings,
        "rest.port": str(port),
        **dict.fromkeys(
            ("rest.address", "rest.bind-address", "jobmanager.bind-host", "taskmanager.bind-host"), "127.0.0.1"
        ),
    }
    words = [str(folder), f"{SERVICE_MS:.0f}", "1", *(f"{key}={value}" for key, value in settings.items())]
    with ExitStack() as stack:
        flink = stack.enter_context(
            started(Java("flink", classpath(peers, "flink"), "FlinkTweets", HEAP_MB, words), folder)
        )
        job = _await_job(flink, address)
        every_ms = row.autoscaler["every_ms"]
        words = [str(port), job, every_ms, *(f"{k}={v}" for k, v in row.autoscaler.items() if k != "every_ms")]
        # It replaces some classes of the client it was built with, so its own jar comes first.
        own = (peers / "autoscaler" / "jars").resolve().glob("flink-autoscaler-*.jar")
        classes = [*map(str, own), *classpath(peers, "autoscaler")]
        autoscaler = stack.enter_context(
            started(Java("autoscaler", classes, "Autoscale", AUTOSCALER_HEAP_MB, words), folder)
        )
        yield FlinkRun(flink, autoscaler, address, job)


def _await_job(flink: Started, address: str) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        flink.check()
        try:
            jobs = _get(f"{address}/jobs/overview")["jobs"]
        except OSError:
            jobs = []
        if jobs:
            return str(jobs[0]["jid"])
        time.sleep(0.2)
    raise RunFailed(f"bench peers: expected a job of Flink within {START_S:.0f} s, got none:\n{flink.last_words()}")


def _get(url: str) -> Any:
    """Directly, whatever proxy is set: it is this machine."""
    with build_opener(ProxyHandler({})).open(url, timeout=10) as answer:
        return json.load(answer)
