"""A standalone Spark cluster of one's own: a real master and real workers on free ports of the loopback, gone at the end."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark

from elastream.testing.ports import free_ports

HOME = Path(pyspark.__file__).parent
WORKERS = 3

_DEFAULTS = """\
spark.cores.max 2
spark.executor.cores 1
spark.executor.memory 512m
spark.ui.enabled false
spark.log.level WARN
"""


class Cluster:
    """Workers have one core each, so there is one executor on each; an application has two unless it asks for more."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._master: list[subprocess.Popen[bytes]] = []
        self._workers: list[subprocess.Popen[bytes]] = []
        self._port, self._page = free_ports(2)
        self.master = f"spark://127.0.0.1:{self._port}"
        conf = folder / "conf"
        conf.mkdir()
        (conf / "spark-defaults.conf").write_text(_DEFAULTS)
        self.environment = os.environ | {
            "SPARK_HOME": str(HOME),
            "SPARK_CONF_DIR": str(conf),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            # Seven Java machines on few cores: what they would gain by compiling well, they do not live to see.
            "JAVA_TOOL_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        }
        """What a driver of this cluster should find in its environment."""

    def start(self) -> None:
        """Returns when all workers are known to the master."""
        words = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", str(self._page)]
        self._master.append(self._spawn("org.apache.spark.deploy.master.Master", *words))
        self._until(lambda: self.state() is not None, "the master did not start")
        for _ in range(WORKERS):
            self.start_worker()
        self._until(lambda: (self.state() or {}).get("aliveworkers") == WORKERS, f"not {WORKERS} workers came")

    def start_worker(self) -> None:
        """One more; it comes when it is ready."""
        folder = str(self._folder / "work")
        words = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", folder]
        self._workers.append(self._spawn("org.apache.spark.deploy.worker.Worker", *words, self.master))

    def kill_worker(self) -> None:
        """As a machine that is switched off: the worker and all that runs in it."""
        worker = self._workers.pop(0)
        kill_session(worker.pid)
        worker.wait()

    def kill_executor(self, number: int = 0) -> None:
        """The process alone: its worker starts another one."""
        applications = [application["id"] for application in (self.state() or {}).get("activeapps", [])]
        pids = [pid for worker in self._workers for pid in _executors_of(worker.pid, applications)]
        if not pids:
            raise LookupError("no executor to kill")
        os.kill(pids[number % len(pids)], signal.SIGKILL)

    def state(self) -> dict[str, Any] | None:
        """What the master's page says; None as long as there is none, or it is not ready."""
        with suppress(OSError, ValueError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self._page}/json/", timeout=5) as page:
                found: dict[str, Any] = json.load(page)
            return found
        return None

    def stop(self) -> None:
        for process in self._workers + self._master:
            process.terminate()
        for process in self._workers + self._master:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            # Executors and their Python processes belong to the session of the worker that started them.
            kill_session(process.pid)
            process.wait()

    def _spawn(self, role: str, *words: str) -> subprocess.Popen[bytes]:
        command = [str(HOME / "bin" / "spark-class"), role, *words]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True)

    def _until(self, condition: Callable[[], object], otherwise: str) -> None:
        until = time.monotonic() + 90
        while not condition():
            dead = any(process.poll() is not None for process in self._workers + self._master)
            if dead or time.monotonic() > until:
                raise RuntimeError(f"Spark cluster: {otherwise}: {(self._folder / 'log').read_text()[-500:]!r}")
            time.sleep(0.1)


@contextmanager
def spark_cluster() -> Iterator[Cluster]:
    """A running cluster; at the end no process of it is left."""
    folder = Path(tempfile.mkdtemp(prefix="elastream-cluster-"))
    try:
        cluster = Cluster(folder)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def members(session: int) -> list[int]:
    """All processes of a session, however deep below its leader."""
    return [pid for pid, owner in _sessions().items() if owner == session]


def kill_session(session: int) -> None:
    while pids := members(session):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _executors_of(worker: int, applications: list[str]) -> list[int]:
    found = []
    for pid in members(worker):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            if "--app-id" in words and words[words.index("--app-id") + 1] in applications:
                found.append(pid)
    return found


def _sessions() -> dict[int, int]:
    """The session of every live process; a zombie is none."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if state != "Z":
                    found[int(entry.name)] = int(session)
    return found
