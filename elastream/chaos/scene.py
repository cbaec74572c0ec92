"""The scene of chaos: a cluster if one is wanted, a driver that is started again when it is gone, and what has arrived."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from elastream.chaos.flow import Arrived, Feeder
from elastream.errors import RunFailed
from elastream.lanes import Audit, Store, audit
from elastream.testing.spark_cluster import Cluster

PATIENCE_S = 120.0
"""A stream that has not moved for this long hangs."""

FILE_ROWS, MOST_FILES_AHEAD = 100, 3


class Scene:
    """One run under attack. `disk` is where its base is; it may be a small one."""

    def __init__(
        self, folder: Path, cluster: Cluster | None, *, edges: bool, per_second: float, seconds: float
    ) -> None:
        self.folder = folder
        self.cluster = cluster
        self.edges = edges
        self.total = int(per_second * seconds)
        self.starts = 0
        self.feeder = Feeder(folder)
        self.arrived = Arrived(folder / "sink")
        (folder / "tmp").mkdir()
        self._words = [str(folder), cluster.master if cluster else "local", str(per_second), str(seconds)]
        self._said: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._process: subprocess.Popen[str] | None = None
        self._listening: list[threading.Thread] = []
        self.last: dict[str, Any] = {}
        """What the driver said last."""

    @property
    def base(self) -> Path:
        return self.folder / "disk" / "base"

    # -- the driver

    def start_driver(self) -> None:
        environment = dict(self.cluster.environment if self.cluster else os.environ)
        # What it leaves behind can be counted, and is gone with the folder.
        environment["TMPDIR"] = str(self.folder / "tmp")
        words = [sys.executable, "-m", "elastream.chaos.driver", *self._words, "edges" if self.edges else "plain"]
        with (self.folder / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
                start_new_session=True,
            )
        self.starts += 1
        self.last = {}
        listening = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listening.append(listening)
        listening.start()

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                with suppress(ValueError):
                    self._said.put({"of": process.pid, **json.loads(line)})

    def hear(self) -> dict[str, Any]:
        """What the driver says now; a driver that is gone is started again."""
        process = self._process
        if process is None or process.poll() is not None:
            self.end_driver()
            self.start_driver()
            process = self._process
        assert process is not None
        while not self._said.empty():
            words = self._said.get()
            if words["of"] == process.pid:
                self.last = words
        return self.last

    def order(self, **words: Any) -> None:
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.write(json.dumps(words) + "\n")
                process.stdin.flush()

    def kill_driver(self) -> None:
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def end_driver(self) -> None:
        """No process of it is left: Spark's go with it, sooner or later."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._let_go(self._process)

    def _let_go(self, process: "subprocess.Popen[str]") -> None:
        process.wait()
        with suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        self._process = None

    # -- the stream

    def flow(self, tuples: int) -> float:
        """Wait until so many more have arrived; seconds that took."""
        return self._until(min(self.arrived.look() + tuples, self.expected), self.feed)

    def _until(self, wanted: int, meanwhile: Callable[[], object] = lambda: None) -> float:
        """Wait until so many have arrived. A stream that stands still is an error."""
        began = time.monotonic()
        moved_s, before = began, -1
        while (now := self.arrived.look()) < wanted:
            self.hear()
            meanwhile()
            if now != before:
                moved_s, before = time.monotonic(), now
            if time.monotonic() - moved_s > PATIENCE_S:
                raise RunFailed(
                    f"chaos: nothing has arrived for {PATIENCE_S:.0f} s; {self.folder}/driver.log tells more"
                )
            time.sleep(0.05)
        return time.monotonic() - began

    def feed(self) -> None:
        """A file more whenever few are left to be read."""
        if self.edges:
            arrived = sum(
                number in self.arrived.times for number in self.feeder.numbers[-MOST_FILES_AHEAD * FILE_ROWS :]
            )
            if arrived + len(self.feeder.poisoned) >= min(FILE_ROWS, len(self.feeder.numbers)):
                self.feeder.write(FILE_ROWS)

    @property
    def expected(self) -> int:
        """How many numbers must arrive in the end."""
        return self.total + len(self.feeder.numbers) - len(self.feeder.poisoned)

    def finish(self) -> Audit:
        """Let everything arrive, stop, and look at what is there."""
        self._until(self.expected)
        until = time.monotonic() + PATIENCE_S
        while self.hear().get("letters", 0) < len(self.feeder.poisoned) and time.monotonic() < until:
            time.sleep(0.2)
        self.order(stop=True)
        process = self._process
        assert process is not None
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            raise RunFailed("chaos: the driver did not stop within 30 s") from None
        self._let_go(process)
        return audit(Store(str(self.base)))

    def processes(self) -> list[int]:
        """Those that drivers of this scene have left behind, by their environment."""
        mine, found = f"TMPDIR={self.folder / 'tmp'}".encode(), []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if mine in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found

    def close(self) -> None:
        self.end_driver()
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # Spark has the driver's standard output too: it ends with the last of them.
        for listening in self._listening:
            listening.join(10)
