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

from elastream.errors import RunFailed
from elastream.lanes import Audit, Store, audit
from elastream.testing.spark_cluster import Cluster
from elastream_lab.chaos.numbers import Numbers
from elastream_lab.chaos.spec import RunSpec
from elastream_lab.chaos.topic import Topic
from elastream_lab.chaos.witness import Witness

PATIENCE_S = 120.0
"""A stream that has not moved for this long hangs."""

QUIET_S = 5.0
"""A run of which nothing has waited for this long flows, although nothing arrives: its sources are silent."""


class Scene:
    """One run under attack. `disk` is where its base is; it may be a small one."""

    def __init__(self, spec: RunSpec, witness: Witness, cluster: Cluster | None, topic: Topic | None) -> None:
        self.spec = spec
        self.folder = Path(spec.folder)
        self.witness = witness
        self.cluster = cluster
        self.topic = topic
        self.starts = 0
        self.over = False
        """True when the sources are exhausted and nothing waits: the driver has ended by itself."""
        (self.folder / "tmp").mkdir()
        self._said: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._process: subprocess.Popen[str] | None = None
        self._listening: list[threading.Thread] = []
        self._heard = False
        self._busy_s = 0.0
        self.last: dict[str, Any] = {}
        """The driver's newest message."""

    @property
    def numbers(self) -> Numbers | None:
        """Of the built-in flow; an application's tuples are its own."""
        return self.witness if isinstance(self.witness, Numbers) else None

    @property
    def base(self) -> Path:
        return self.folder / "disk" / "base"

    # -- the driver

    def start_driver(self) -> None:
        environment = dict(self.cluster.environment if self.cluster else os.environ)
        # What it leaves behind can be counted, and is gone with the folder.
        environment["TMPDIR"] = str(self.folder / "tmp")
        words = [sys.executable, "-m", "elastream_lab.chaos.driver", self.spec.to_text()]
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
        """What the driver says now; a driver that is gone is started again, unless the stream is over."""
        self._take_said()
        process = self._process
        if not self.over and (process is None or process.poll() is not None):
            if process is not None and process.returncode == 0:
                self.over = True
            elif self.starts == 1 and not self._heard:
                raise RunFailed(
                    f"chaos: the run does not start: {self._last_line()}; {self.folder}/driver.log tells more"
                )
            self.end_driver()
            if not self.over:
                self.start_driver()
        return self.last

    def _take_said(self) -> None:
        while not self._said.empty():
            words = self._said.get()
            self._heard = True
            if self._process is not None and words["of"] == self._process.pid:
                self.last = words

    def _last_line(self) -> str:
        lines = (self.folder / "driver.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it says nothing"

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
        self.witness.feed()
        wanted = self._look() + tuples
        if self.witness.expected is not None:
            wanted = min(wanted, self.witness.expected)
        return self._until(lambda: self._look() >= wanted or self._is_quiet(), self.witness.feed)

    def _look(self) -> int:
        return self.witness.look(self.hear())

    def _is_quiet(self) -> bool:
        """True when an application has had nothing to do for a while."""
        if self.numbers is not None or self.last.get("queued") != 0:
            self._busy_s = time.monotonic()
        return time.monotonic() - self._busy_s > QUIET_S

    def _until(self, condition: Callable[[], bool], meanwhile: Callable[[], object] = lambda: None) -> float:
        """Wait for a condition, or the end of the stream. A stream that stands still is an error."""
        began = moved_s = self._busy_s = time.monotonic()
        before = -1
        while not condition() and not self.over:
            meanwhile()
            now = self._look()
            if now != before:
                moved_s, before = time.monotonic(), now
            if time.monotonic() - moved_s > PATIENCE_S:
                raise RunFailed(
                    f"chaos: nothing has arrived for {PATIENCE_S:.0f} s; {self.folder}/driver.log tells more"
                )
            time.sleep(0.05)
        return time.monotonic() - began

    def finish(self) -> Audit:
        """Let everything arrive, stop, and look at what is there."""
        self._until(lambda: self.witness.is_settled(self.hear()))
        process = self._process
        if process is not None:
            self.order(stop=True)
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
