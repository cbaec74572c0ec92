"""A Redis server of one's own: a real one, on a free port of the loopback, gone after the tests."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from debian import found_or_installed

from elastream.testing.ports import free_ports

PASSWORD = "s3cret/with@signs"
PASSWORD_IN_URL = "s3cret%2Fwith%40signs"


class NoRedis(Exception):
    """Why there is none, in one line."""


class RedisServer:
    """`url` reaches it; `stop` and `start` keep what is stored."""

    def __init__(self, binary: str, folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD_IN_URL}@127.0.0.1:{self.port}/3"

    def start(self) -> None:
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--requirepass", PASSWORD]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binary, *words, "--appendonly", "yes", "--save", "", "--dir", str(self._folder)],
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + 30
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > until:
                raise NoRedis(f"redis-server did not start: {(self._folder / 'log').read_text()[-300:]!r}")
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(timeout=30)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """A running server. Raises `NoRedis`."""
    binary = _binary()
    folder = Path(tempfile.mkdtemp(prefix="elastream-redis-"))
    try:
        server = RedisServer(binary, folder)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binary() -> str:
    found = found_or_installed(lambda: shutil.which("redis-server"), "redis-server")
    if found is None:
        raise NoRedis("no Redis server here, and it could not be installed; apt-get install redis-server")
    return found
