"""One driver a base directory: who holds it, and how a second one is told."""

import fcntl
import json
import os
import socket
import time
import uuid
from collections.abc import Callable
from typing import IO, Any

from elastream.errors import BaseInUse, BaseUnusable
from elastream.lanes.sealed import seal, unseal
from elastream.lanes.store import Store

LEASE_S = 30.0
"""Where files cannot be locked, a driver that has not renewed its lease for this long counts as dead."""


class Hold:
    """Held from `take` to `release`. On a local disk the kernel lets go when the process dies, however it dies."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._file: IO[str] | None = None
        self._owner = uuid.uuid4().hex
        self._renewed = 0.0

    def take(self) -> None:
        if self._store.is_local:
            self._lock_file()
        else:
            self._take_lease()

    def renew(self) -> None:
        """Called at every commit; writes only where leases are used, and not more often than needed."""
        if self._store.is_local or self._clock() - self._renewed < LEASE_S / 3:
            return
        lease = self._lease()
        if lease and lease["owner"] != self._owner:
            raise BaseInUse(f"base {self._store}: {lease['who']} has taken it over; this driver stops before it writes")
        self._write_lease(self._clock())

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        elif not self._store.is_local and self._renewed:
            lease = self._lease()
            if lease and lease["owner"] == self._owner:
                self._store.delete(["lease.json"])

    def _lock_file(self) -> None:
        path = self._store.local_path
        try:
            path.mkdir(parents=True, exist_ok=True)
            file = open(path / "lock", "a+", encoding="utf-8")  # noqa: SIM115 - held until release
        except OSError as error:
            raise BaseUnusable(
                f"base {self._store}: cannot be written: {error.strerror}; choose another base or mend its permissions"
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another driver"
            file.close()
            raise BaseInUse(f"base {self._store}: in use by {holder}; stop it, or choose another base") from None
        file.truncate(0)
        file.write(_who())
        file.flush()
        self._file = file

    def _take_lease(self) -> None:
        try:
            lease = self._lease()
        except OSError as error:
            raise BaseUnusable(f"base {self._store}: cannot be read: {error}") from None
        if lease and self._clock() - lease["renewed_s"] < LEASE_S and not _dead_here(lease["who"]):
            raise BaseInUse(
                f"base {self._store}: in use by {lease['who']}; stop it, or wait {LEASE_S:.0f} s if it has died"
            )
        try:
            self._write_lease(self._clock())
        except OSError as error:
            raise BaseUnusable(f"base {self._store}: cannot be written: {error}") from None

    def _lease(self) -> dict[str, Any] | None:
        if not self._store.exists("lease.json"):
            return None
        return unseal("lease", self._store.read("lease.json"), f"{self._store}/lease.json")

    def _write_lease(self, now: float) -> None:
        self._store.write("lease.json", seal("lease", {"owner": self._owner, "who": _who(), "renewed_s": now}))
        self._renewed = now


def _who() -> str:
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid()})


def _dead_here(who: str) -> bool:
    """True when the holder was a process of this machine that is no more."""
    holder = json.loads(who)
    if holder["host"] != socket.gethostname():
        return False
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
