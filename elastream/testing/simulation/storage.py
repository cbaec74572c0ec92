"""The storage of a simulated run: files in memory, seen by each process through a store that is slow, fails, fills up and tears."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import pyarrow as pa

from elastream.errors import BaseInUse
from elastream.lanes.lease import Lock
from elastream.lanes.store import AppendFile, RangeFile, Store
from elastream.testing.simulation.scheduler import Killed, Process

UNFINISHED = ".unfinished"


class StorageFaults(Protocol):
    """Decides what goes wrong with an operation on a file."""

    def latency_s(self, process: Process, operation: str, name: str) -> float: ...

    def failure(self, process: Process, operation: str, name: str) -> OSError | None: ...

    def crash(self, process: Process, point: str, name: str) -> bool:
        """True when the process dies here: `before`, `in` or `after` an operation that changes a file."""
        ...


class Files(dict[str, bytearray]):
    """Files by their names, and the names in each folder: lists are asked for after every commit."""

    def __init__(self) -> None:
        super().__init__()
        self.folders: dict[str, dict[str, None]] = {}

    def __setitem__(self, name: str, data: bytearray) -> None:
        super().__setitem__(name, data)
        folder, _, rest = name.rpartition("/")
        self.folders.setdefault(folder, {})[rest] = None

    def remove(self, name: str) -> None:
        if self.pop(name, None) is not None:
            folder, _, rest = name.rpartition("/")
            del self.folders[folder][rest]

    def within(self, folder: str, *, finished: bool) -> list[str]:
        return [name for name in self.folders.get(folder, ()) if name.endswith(UNFINISHED) is not finished]


class Disk:
    """The files of one base, and who has locked it. With `appends` a disk, else an object store."""

    def __init__(self, appends: bool, faults: StorageFaults, chance: random.Random) -> None:
        self.appends = appends
        self.files = Files()
        self.faults = faults
        self.chance = chance
        self.holder: Process | None = None
        self.on_change: list[Callable[[Process, str, str], None]] = []
        """Called after each change: process, operation, file."""

    def changed(self, process: Process, operation: str, name: str) -> None:
        for listener in self.on_change:
            listener(process, operation, name)


class SimulatedStore(Store):
    """A base as one process sees it. Every operation takes virtual time and may fail or be the last of its process."""

    def __init__(self, disk: Disk, process: Process, locked: bool) -> None:
        """`locked`: the process calls it with a lock held, so time is owed and not spent at once."""
        self.uri = "simulated"
        self.is_local = disk.appends
        self._disk = disk
        self._process = process
        self._locked = locked

    @property
    def appends(self) -> bool:
        return self._disk.appends

    # -- whole files

    def write(self, name: str, data: "bytes | pa.Buffer") -> None:
        target = name + UNFINISHED if self.is_local else name
        self._change("write", name, lambda: self._put(name, bytes(data)), lambda: self._tear(target, bytes(data)))

    def write_new(self, name: str, data: bytes) -> bool:
        if not self.is_local:
            return super().write_new(name, data)
        self._look("exists", name)
        if name in self._disk.files:
            return False
        self._change("write", name, lambda: self._put(name, data), lambda: self._tear(name + UNFINISHED, data))
        return True

    def read(self, name: str) -> bytes:
        self._look("read", name)
        return bytes(self.content(name))

    def read_from(self, name: str, offset: int) -> bytes:
        self._look("read", name)
        return bytes(self.content(name)[offset:])

    def read_many(self, names: Sequence[str]) -> list[bytes]:
        return [self.read(name) for name in names]

    def read_range(self, name: str, offset: int, length: int) -> pa.Buffer:
        self._look("read", name)
        return pa.py_buffer(bytes(self.content(name)[offset : offset + length]))

    # -- files that are appended to

    def create(self, name: str) -> AppendFile:
        self._change("create", name, lambda: self._create(name), lambda: None)
        return _Appending(self, name)

    def append_to(self, name: str) -> AppendFile:
        self._look("open", name)
        self.content(name)
        return _Appending(self, name)

    def open(self, name: str) -> RangeFile:
        self._look("open", name)
        return _Reading(self, self.content(name))

    # -- names

    def exists(self, name: str) -> bool:
        self._look("exists", name)
        return name in self._disk.files

    def sizes(self, folder: str) -> dict[str, int]:
        self._look("list", folder)
        files = self._disk.files
        return {name: len(files[f"{folder}/{name}"]) for name in files.within(folder, finished=True)}

    def names(self, folder: str) -> list[str]:
        return list(self.sizes(folder))

    def unfinished(self, folder: str) -> list[str]:
        self._look("list", folder)
        return self._disk.files.within(folder, finished=False)

    def delete(self, names: Iterable[str]) -> None:
        for name in list(names):
            self._change("delete", name, lambda name=name: self._disk.files.remove(name), lambda: None)  # type: ignore[misc]

    # -- inside

    def content(self, name: str) -> bytearray:
        data = self._disk.files.get(name)
        if data is None:
            raise FileNotFoundError(2, "No such file", name)
        return data

    def append(self, name: str, data: bytes) -> None:
        # A file that is open can be appended to when it is deleted; nobody sees that.
        file = self._disk.files.get(name)
        content = bytearray() if file is None else file
        self._change("append", name, lambda: content.extend(data), lambda: content.extend(self._part(data)))

    def look(self, operation: str, name: str) -> None:
        self._look(operation, name)

    def truncate(self, name: str, size: int) -> None:
        self._look("truncate", name)
        del self.content(name)[size:]

    def _create(self, name: str) -> None:
        if name in self._disk.files:
            raise FileExistsError(17, "File exists", name)
        self._disk.files[name] = bytearray()

    def _put(self, name: str, data: bytes) -> None:
        self._disk.files[name] = bytearray(data)

    def _tear(self, target: str, data: bytes) -> None:
        """A crash in the middle of a write: on a disk some of it is there, in an object store nothing or all."""
        if self.is_local:
            self._disk.files[target] = bytearray(self._part(data))
        elif self._disk.chance.random() < 0.5:
            self._disk.files[target] = bytearray(data)
            self._disk.changed(self._process, "write", target)

    def _part(self, data: bytes) -> bytes:
        # Never all of it: that is a crash after the write.
        part = data[: self._disk.chance.randrange(max(1, len(data)))]
        # A file system may have made the file longer before it wrote the bytes.
        return part + bytes(len(data) - len(part)) if self._disk.chance.random() < 0.3 else part

    def _look(self, operation: str, name: str) -> None:
        self._process.check()
        self._spend(self._disk.faults.latency_s(self._process, operation, name))
        failure = self._disk.faults.failure(self._process, operation, name)
        if failure is not None:
            raise failure

    def _change(self, operation: str, name: str, change: Callable[[], object], tear: Callable[[], object]) -> None:
        faults, process = self._disk.faults, self._process
        process.check()
        if faults.crash(process, f"before {operation}", name):
            process.kill()
            process.check()
        latency_s = faults.latency_s(process, operation, name)
        self._spend(latency_s / 2)
        failure = faults.failure(process, operation, name)
        if failure is not None:
            if operation == "append":
                tear()
            raise failure
        if faults.crash(process, f"in {operation}", name):
            tear()
            process.kill()
            raise Killed(process.name)
        change()
        self._disk.changed(process, operation, name)
        if faults.crash(process, f"after {operation}", name):
            process.kill()
            process.check()
        self._spend(latency_s / 2)

    def _spend(self, seconds: float) -> None:
        if self._locked and self.is_local:
            self._process.owed_s += seconds
        else:
            self._process.scheduler.pause(seconds)


class _Appending:
    def __init__(self, store: SimulatedStore, name: str) -> None:
        self._store = store
        self._name = name

    def write(self, data: "bytes | pa.Buffer") -> None:
        self._store.append(self._name, bytes(data))

    def truncate(self, size: int) -> None:
        self._store.truncate(self._name, size)

    def close(self) -> None:
        """Nothing is open."""


class _Reading:
    def __init__(self, store: SimulatedStore, content: bytearray) -> None:
        self._store = store
        self._content = content

    def read(self, offset: int, length: int) -> bytes:
        self._store.look("read", "")
        return bytes(self._content[offset : offset + length])

    def close(self) -> None:
        """Nothing is open."""


class SimulatedMachine:
    """The machine of a driver: every driver has its own, and all see one disk."""

    def __init__(self, disk: Disk, process: Process) -> None:
        self._disk = disk
        self._process = process

    def lock(self, store: Store) -> Lock:
        holder = self._disk.holder
        if holder is not None and holder.alive and holder is not self._process:
            raise BaseInUse(f"base {store}: in use by {holder.name}; stop it, or choose another base")
        self._disk.holder = self._process
        return self

    def close(self) -> None:
        if self._disk.holder is self._process:
            self._disk.holder = None

    def shown(self) -> str:
        return self._process.name

    def process(self) -> list[str]:
        return []

    def is_alive(self, process: list[str] | None) -> bool | None:
        return None
