"""Hosts without Spark, for tests and for measuring: threads of this process, or processes of their own."""

import subprocess
import sys
import threading

import msgspec

from elastream.engine.hosts.link import Event
from elastream.engine.hosts.server import HostServer
from elastream.engine.messages import ToHost
from elastream.engine.worker.host import serve_as_host
from elastream.engine.worker.program import Program, load_program
from elastream.lanes.store import Store


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

    def start(self, program: Program) -> None:
        self._program = program

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
        return self._server.poll(timeout_s)

    def send(self, host: int, message: ToHost) -> None:
        self._server.send(host, message)

    def wake(self) -> None:
        self._server.wake()

    def replace(self, host: int) -> None:
        self._server.drop(host)
        if host in self.processes:
            self.processes[host].kill()

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
        assert self._program is not None
        words = msgspec.msgpack.encode((number, *self._server.whereabouts, self._program.to_bytes()))
        while not self._closed.is_set() and not over.is_set():
            process = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE)
            self.processes[number] = process
            process.communicate(words)


def _main() -> None:
    number, address, secret, program = msgspec.msgpack.decode(sys.stdin.buffer.read())
    serve_as_host(number, tuple(address), secret, *load_program(program))


if __name__ == "__main__":
    _main()
