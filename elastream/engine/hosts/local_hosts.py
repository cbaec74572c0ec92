"""Hosts without Spark, for tests and for measuring: threads of this process, or processes of their own."""

import contextlib
import subprocess
import sys
import threading
from collections import deque

import msgspec

from elastream.engine.hosts.link import Event, HostCame, HostsFailed
from elastream.engine.hosts.refusal import refusal_in
from elastream.engine.hosts.server import HostServer
from elastream.engine.messages import ToHost
from elastream.engine.worker.host import serve_as_host
from elastream.engine.worker.program import Program, load_program
from elastream.lanes.store import Store

KEPT_LINES = 20

PUMP_S = 0.5
"""How long the end of a process's standard error may take to come after its end."""

MOST_FAILURES = 3
"""So many processes in a row that ended by themselves before they were hosts: then none can be had."""


class LocalHosts:
    """Keeps hosts: one that ends is started again, as Spark would."""

    def __init__(self, *, processes: bool = False) -> None:
        self._server = HostServer()
        self._kept: dict[int, threading.Event] = {}
        """Hosts that shall be there; each event is set when that is over."""
        self._as_processes = processes
        self._closed = threading.Event()
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self._program: Program | None = None
        self._data = b""
        self._came: set[int] = set()
        """Hosts that have come since their process was started last."""
        self._failed: list[HostsFailed] = []
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        """The newest lines that processes wrote to standard error."""

    def start(self, program: Program) -> None:
        self._program = program
        # Here and not in a thread: whoever starts the run is told of a function that cannot be sent.
        self._data = program.to_bytes() if self._as_processes else b""

    def keep(self, host: int) -> None:
        if host not in self._kept:
            over = self._kept[host] = threading.Event()
            target = self._keep_process if self._as_processes else self._keep_thread
            threading.Thread(target=target, args=(host, over), name=f"elastream-host-{host}", daemon=True).start()

    def end(self, host: int) -> None:
        over = self._kept.pop(host, None)
        if over is not None:
            over.set()
            self._server.drop(host)

    def poll(self, timeout_s: float) -> list[Event]:
        events = self._server.poll(timeout_s)
        self._came.update(event.host for event in events if isinstance(event, HostCame))
        while self._failed:
            events.append(self._failed.pop())
        return events

    def send(self, host: int, message: ToHost) -> None:
        self._server.send(host, message)

    def wake(self) -> None:
        self._server.wake()

    def replace(self, host: int) -> None:
        self._server.drop(host)
        if host in self.processes:
            self.processes[host].kill()

    def last_words(self) -> str:
        return "".join(list(self._last)).strip()

    def close(self) -> None:
        self._closed.set()
        self._server.close()
        for process in self.processes.values():
            try:
                process.wait(1.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _keep_thread(self, number: int, over: threading.Event) -> None:
        assert self._program is not None
        store = Store(self._program.base)
        while not self._closed.is_set() and not over.is_set():
            serve_as_host(number, *self._server.whereabouts, self._program, store, abandon=lambda: None)

    def _keep_process(self, number: int, over: threading.Event) -> None:
        words = msgspec.msgpack.encode((number, *self._server.whereabouts, self._data))
        failures = 0
        while not self._closed.is_set() and not over.is_set():
            self._came.discard(number)
            process = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            self.processes[number] = process
            said = self._serve(process, words)
            # One that was killed is started again for as long as it is wanted; one that cannot begin never will.
            failures = failures + 1 if process.returncode > 0 and number not in self._came else 0
            if failures >= MOST_FAILURES or (failures and refusal_in(said)):
                self._failed.append(HostsFailed(refusal_in(said) or f"hosts: they cannot begin: {said.strip()}"))
                self._server.wake()
                return

    def _serve(self, process: "subprocess.Popen[bytes]", words: bytes) -> str:
        """Until the process ends; gives the end of what it wrote to standard error, which passes on to ours."""
        last: deque[str] = deque(maxlen=KEPT_LINES)
        pump = threading.Thread(target=self._pass_on, args=(process, last), daemon=True)
        pump.start()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(words)
        process.wait()
        # What it has started may live on and keep its standard error.
        pump.join(PUMP_S)
        return "".join(list(last))

    def _pass_on(self, process: "subprocess.Popen[bytes]", last: deque[str]) -> None:
        assert process.stderr is not None
        with process.stderr:
            for data in process.stderr:
                line = data.decode(errors="replace")
                last.append(line)
                self._last.append(line)
                sys.stderr.write(line)


def _main() -> None:
    number, address, secret, program = msgspec.msgpack.decode(sys.stdin.buffer.read())
    serve_as_host(number, tuple(address), secret, *load_program(program))


if __name__ == "__main__":
    _main()
