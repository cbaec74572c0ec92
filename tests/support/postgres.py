"""A PostgreSQL server of one's own: a real one, on a free port of the loopback, gone after the tests."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from debian import found_or_installed

from elastream.testing.ports import free_ports

PASSWORD = "s3cret/with@signs"
PASSWORD_IN_URL = "s3cret%2Fwith%40signs"


class NoServer(Exception):
    """Why there is none, in one line."""


class Server:
    """`url` reaches it; `stop` and `start` keep what is stored."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self._folder = folder
        self._as: dict[str, Any] = _another_user() if os.geteuid() == 0 else {}
        (self.port,) = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        if self._as:
            os.chown(folder, self._as["user"], self._as["group"])
        (folder / "password").write_text(PASSWORD)
        (folder / "password").chmod(0o644)
        words = ["-D", str(folder / "data"), "-U", "elastream", "--auth=scram-sha-256", "--no-sync", "--locale=C.UTF-8"]
        self._run("initdb", *words, "--encoding=UTF8", f"--pwfile={folder / 'password'}")

    @property
    def url(self) -> str:
        return f"postgresql://elastream:{PASSWORD_IN_URL}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        words = ["-D", str(self._folder / "data"), "-p", str(self.port), "-k", str(self._folder), "-c", "fsync=off"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), *words, "-c", "listen_addresses=127.0.0.1"],
                cwd=self._folder,
                stdout=log,
                stderr=log,
                **self._as,
            )
        until = time.monotonic() + 30
        ready = [str(self._binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode:
            if self._process.poll() is not None or time.monotonic() > until:
                raise NoServer(f"postgres did not start: {(self._folder / 'log').read_text()[-300:]!r}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            # Does not wait for those who are connected.
            self._process.send_signal(signal.SIGINT)
            self._process.wait(timeout=30)

    def _run(self, name: str, *words: str) -> None:
        command = [str(self._binaries / name), *words]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False, **self._as)
        if done.returncode:
            raise NoServer(f"{name} failed: {done.stderr.strip()[-300:]!r}")


@contextmanager
def postgres_server() -> Iterator[Server]:
    """A running server. Raises `NoServer`."""
    binaries = _binaries()
    # Not pytest's folder: another user may not look into that one. And a socket's path has to be short.
    folder = Path(tempfile.mkdtemp(prefix="elastream-pg-"))
    try:
        server = Server(binaries, folder)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    found = found_or_installed(_find, "postgresql")
    if found is None:
        raise NoServer("no PostgreSQL server here, and it could not be installed; apt-get install postgresql")
    return found


def _find() -> Path | None:
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if on_path := shutil.which("initdb"):
        places.append(Path(on_path).resolve().parent)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


def _another_user() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise NoServer("running as root, and there is neither a user postgres nor nobody to run the server")
