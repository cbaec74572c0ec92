"""The lease of a base: one driver per base. A second one is refused; one that was cut off notices, and stops.

Whoever takes a base leaves a claim in it, and reads the ledger after that. Whoever has it looks, after each entry that it has
written and before anything comes of it, whether its claim is still the newest. So an entry that nobody will read has no
consequences, whatever clocks and networks do.

To refuse a second driver in time, a local base is locked, which the kernel ends with the process. Elsewhere the claim has a
beat: who wants the base watches for a while, by its own clock, whether the holder's heart beats.
"""

import errno
import fcntl
import json
import logging
import os
import re
import socket
import stat
import time
import uuid
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from elastream.errors import BaseInUse, BaseUnusable, Damaged
from elastream.lanes.private_files import open_file
from elastream.lanes.sealed import seal, unseal
from elastream.lanes.store import Store

log = logging.getLogger("elastream.lanes")

FOLDER = "claims"

LEASE_S = 30.0
"""Where files cannot be locked, a driver whose heart has not beaten for this long counts as dead."""

LOOK_S = 0.5
"""Between two looks at a holder's heart."""

_CLAIM = re.compile(r"(\d{8})-[0-9a-f]{32}\.claim")


class Lock(Protocol):
    """Held until it is closed."""

    def close(self) -> None: ...


class Machine(Protocol):
    """The machine on which a driver runs: its processes and its locks."""

    def lock(self, store: Store) -> Lock:
        """Lock a base on a disk. Raises `BaseInUse` when another process has done so."""
        ...

    def shown(self) -> str:
        """This process, for people."""
        ...

    def process(self) -> list[str]:
        """This process among all that there ever were; empty when that is not known."""
        ...

    def is_alive(self, process: list[str] | None) -> bool | None:
        """True while a process of this machine runs; None for processes elsewhere."""
        ...


class BaseLease:
    """Held from `acquire` to `release`."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        machine: "Machine | None" = None,
        owner: str | None = None,
    ) -> None:
        """`owner`: 32 hexadecimal digits that no other driver has."""
        self._store = store
        self._machine = machine or ThisMachine()
        self._clock = clock
        self._sleep = sleep
        self._owner = owner or uuid.uuid4().hex
        self._lock: Lock | None = None
        self._claim = ""
        self._beats = 0
        self._beaten_s = 0.0

    def acquire(self) -> None:
        """Take the base, or raise and say who has it."""
        try:
            if self._store.is_local:
                self._lock = self._machine.lock(self._store)
            else:
                self._watch_holder()
            self._leave_claim()
        except OSError as error:
            self.release()
            raise BaseUnusable(f"base {self._store}: cannot be written: {error}; choose another base") from None
        except BaseException:
            self.release()
            raise

    def confirm(self) -> None:
        """Called after each entry was written: raises when another driver has claimed the base meanwhile."""
        newest = self._newest()
        if newest != self._claim:
            who = self._read(newest).get("who", "another driver") if newest else "another driver"
            raise BaseInUse(f"base {self._store}: {who} has taken it over; this driver stops")

    def keep(self) -> None:
        """Called now and then, also while nothing is written: the heart beats."""
        if not self._store.is_local and self._clock() - self._beaten_s >= LEASE_S / 3:
            self._beat()

    def release(self) -> None:
        if self._claim:
            with suppress(OSError):
                self._store.delete([f"{FOLDER}/{self._claim}"])
            self._claim = ""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _leave_claim(self) -> None:
        claims = self._claims()
        number = max((int(name[:8]) for name in claims), default=0) + 1
        self._claim = f"{number:08d}-{self._owner}.claim"
        self._beat()
        newest = self._newest()
        if newest != self._claim:
            # Two at the same moment: both have claimed before they look, so one of them at least sees the other.
            raise BaseInUse(f"base {self._store}: another driver takes it at this moment; this one stops")
        # Also those that a crash left half written. Who writes one at this moment has lost the base to us already.
        cut_off = [name for name in self._store.unfinished(FOLDER) if name[:8] <= f"{number:08d}"]
        self._store.delete(f"{FOLDER}/{name}" for name in [*claims, *cut_off])

    def _beat(self) -> None:
        self._beats += 1
        self._beaten_s = self._clock()
        document = {"who": self._machine.shown(), "process": self._machine.process(), "beats": self._beats}
        self._store.write(f"{FOLDER}/{self._claim}", seal("lease", document))

    def _watch_holder(self) -> None:
        """Wait until nobody has it, or raise: somebody's heart beats."""
        since, before = self._clock(), None
        while newest := self._newest():
            holder = self._read(newest)
            alive = self._machine.is_alive(holder.get("process"))
            if not holder or alive is False:
                return
            heard = newest, holder["beats"]
            if alive or (before is not None and heard != before):
                raise BaseInUse(f"base {self._store}: in use by {holder['who']}; stop it, or choose another base")
            if before is None:
                log.info("base %s: %s has it; waiting to see whether it lives", self._store, holder["who"])
            elif self._clock() - since >= LEASE_S:
                return
            before = heard
            self._sleep(LOOK_S)

    def _newest(self) -> str:
        return max(self._claims(), default="")

    def _claims(self) -> list[str]:
        return [name for name in self._store.names(FOLDER) if _CLAIM.fullmatch(name)]

    def _read(self, name: str) -> dict[str, Any]:
        """What a claim says; nothing when it is gone, or damaged."""
        try:
            return unseal("lease", self._store.read(f"{FOLDER}/{name}"), f"{self._store}/{FOLDER}/{name}")
        except (OSError, Damaged):
            return {}


def refuse_if_locked(store: Store) -> None:
    """Raise when a driver of this machine has a local base at this moment. Nothing is changed."""
    try:
        descriptor = os.open(store.local_path / "lock", os.O_RDONLY)
    except OSError:
        return
    _lock(descriptor, store)
    os.close(descriptor)


def _lock(descriptor: int, store: Store) -> None:
    """Lock a file; when another process has, close it and say who."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 4096, 0).decode(errors="replace").strip() or "another driver"
        os.close(descriptor)
        raise BaseInUse(f"base {store}: in use by {holder}; stop it, or choose another base") from None


class _LockFile:
    """A lock on a file of the base. A forked child lets go of it, or it would hold the base when the driver is dead."""

    def __init__(self, store: Store) -> None:
        path = store.local_path / "lock"
        try:
            store.make_folder("")
            # Opening it waits for nobody, should it be a pipe.
            self._descriptor = open_file(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ELOOP or path.is_symlink():
                raise _not_ours(store, "a symbolic link") from None
            raise BaseUnusable(
                f"base {store}: cannot be written: {error.strerror}; choose another base or mend its permissions"
            ) from None
        wrong = _wrong_file(os.fstat(self._descriptor))
        if wrong:
            os.close(self._descriptor)
            raise _not_ours(store, wrong)
        _lock(self._descriptor, store)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, _shown().encode(), 0)
        _open_files.add(self)

    def close(self) -> None:
        _open_files.discard(self)
        os.close(self._descriptor)


def _wrong_file(status: os.stat_result) -> str:
    """A file that a driver would write to and that it did not make; empty when it did."""
    if not stat.S_ISREG(status.st_mode):
        return "no regular file"
    if status.st_uid != os.geteuid():
        return f"a file of user {status.st_uid}"
    return "a file with another name besides" if status.st_nlink > 1 else ""


def _not_ours(store: Store, given: str) -> BaseUnusable:
    return BaseUnusable(
        f"base {store}: 'lock' must be a regular file of user {os.geteuid()}, and is {given}; remove it, or choose another base"
    )


class ThisMachine:
    """The kernel's locks and processes."""

    def lock(self, store: Store) -> Lock:
        return _LockFile(store)

    def shown(self) -> str:
        return _shown()

    def process(self) -> list[str]:
        return _process()

    def is_alive(self, process: list[str] | None) -> bool | None:
        return _is_alive(process)


_open_files: "weakref.WeakSet[_LockFile]" = weakref.WeakSet()


def _close_in_child() -> None:
    for file in list(_open_files):
        file.close()


os.register_at_fork(after_in_child=_close_in_child)


def _shown() -> str:
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid()})


def _process() -> list[str]:
    """This process among all that there ever were: boot of the machine, namespace of pids, pid, when it began."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return [boot, os.readlink("/proc/self/ns/pid"), str(os.getpid()), _began(os.getpid())]
    except OSError:
        return []


def _is_alive(process: list[str] | None) -> bool | None:
    """Whether a process of this machine is still there; None of others, of which nothing is known."""
    mine = _process()
    if not process or not mine or process[:2] != mine[:2]:
        return None
    try:
        return _began(int(process[2])) == process[3]
    except OSError:
        return False


def _began(pid: int) -> str:
    """When a process began, in ticks since the machine did: pids are used again."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()[19]
