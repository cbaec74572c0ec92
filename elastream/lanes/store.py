"""A directory on any filesystem that pyarrow opens: whole files written at once, read whole or in part."""

import os
import re
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyarrow import fs

from elastream.errors import BaseUnusable
from elastream.lanes import private_files

_UNFINISHED = ".unfinished"

_REQUESTS = 16
"""At the same time to an object store, which answers each after milliseconds and has no call for many."""


class AppendFile(Protocol):
    """A file of a store to which one process appends."""

    def write(self, data: "bytes | pa.Buffer") -> None:
        """Append all of it. When this raises `OSError`, a part of it may be there."""
        ...

    def truncate(self, size: int) -> None: ...

    def close(self) -> None: ...


class RangeFile(Protocol):
    """An open file of a store."""

    def read(self, offset: int, length: int) -> "bytes | pa.Buffer":
        """Part of the file, shorter when the file is."""
        ...

    def close(self) -> None: ...


class Store:
    """The base directory of a run. Names are relative to it, with `/` between folders."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        try:
            if "://" in uri:
                self._fs, self._root = _open(uri)
            else:
                # Absolute: whoever else opens it may be in another directory.
                self.uri = str(Path(uri).absolute())
                self._fs, self._root = fs.LocalFileSystem(), self.uri
        except (OSError, ValueError, pa.ArrowException) as error:
            # What pyarrow says may repeat the address, secrets and all.
            said = str(error).replace(uri, str(self))
            raise BaseUnusable(f"base {self}: pyarrow cannot open it: {said}") from None
        self.is_local = isinstance(self._fs, fs.LocalFileSystem)
        self._renames = self._fs.type_name in ("local", "hdfs")
        self._made: set[str] = set()

    def __str__(self) -> str:
        """The address without the secrets it may hold."""
        return re.sub(r"//.*@", "//", self.uri.split("?")[0])

    @property
    def appends(self) -> bool:
        """True when what one process appends to a file is there for all others at once: on a disk, not on a network's."""
        return self.is_local and not is_network_path(self.local_path)

    @property
    def local_path(self) -> Path:
        """Where it is on this machine; only when `is_local`."""
        return Path(self._root)

    def write(self, name: str, data: "bytes | pa.Buffer") -> None:
        """Write a whole file: a reader sees all of it or nothing, also after a crash."""
        self.make_folder(os.path.dirname(name))
        path = self._path(name)
        target = path + _UNFINISHED if self._renames else path
        if self.is_local:
            private_files.write_file(target, memoryview(data))
        else:
            with self._fs.open_output_stream(target) as stream:
                stream.write(data)
        if self._renames:
            self._fs.move(target, path)

    def write_new(self, name: str, data: bytes) -> bool:
        """Write a whole file unless there is one of this name; False when there is.

        On a disk two writers cannot both succeed. Object stores are asked first, which two at the same moment may pass.
        """
        if not self.is_local:
            if self.exists(name):
                return False
            self.write(name, data)
            return True
        self.make_folder(os.path.dirname(name))
        path = self._path(name)
        unfinished = f"{path}.{uuid.uuid4().hex}{_UNFINISHED}"
        try:
            private_files.write_file(unfinished, data)
            os.link(unfinished, path)
        except FileExistsError:
            return False
        finally:
            with suppress(FileNotFoundError):
                os.unlink(unfinished)
        return True

    def create(self, name: str) -> AppendFile:
        """Begin a file to which can be appended, where `appends` is true. Raises when there is one of this name."""
        self.make_folder(os.path.dirname(name))
        return _LocalAppend(self._path(name), os.O_CREAT | os.O_EXCL)

    def append_to(self, name: str) -> AppendFile:
        """Open a file that is there, on a disk, to append to it."""
        return _LocalAppend(self._path(name), 0)

    def open(self, name: str) -> RangeFile:
        """Open a file on a disk to read parts of it."""
        return _LocalRange(self._path(name))

    def read(self, name: str) -> bytes:
        with self._fs.open_input_file(self._path(name)) as file:
            return bytes(file.read())

    def read_from(self, name: str, offset: int) -> bytes:
        """The end of a file, from a byte on."""
        with self._fs.open_input_file(self._path(name)) as file:
            file.seek(min(offset, file.size()))
            return bytes(file.read())

    def read_many(self, names: Sequence[str]) -> list[bytes]:
        """Several whole files."""
        if self.is_local or len(names) < 2:
            return [self.read(name) for name in names]
        with ThreadPoolExecutor(max_workers=_REQUESTS) as pool:
            return list(pool.map(self.read, names))

    def read_range(self, name: str, offset: int, length: int) -> pa.Buffer:
        """Part of a file, shorter when the file is."""
        with self._fs.open_input_file(self._path(name)) as file:
            # Object stores refuse to go behind the end.
            file.seek(min(offset, file.size()))
            return file.read_buffer(length)

    def exists(self, name: str) -> bool:
        return bool(self._fs.get_file_info(self._path(name)).type != fs.FileType.NotFound)

    def sizes(self, folder: str) -> dict[str, int]:
        """The finished files right below a folder and their bytes."""
        selector = fs.FileSelector(self._path(folder), allow_not_found=True)
        return {
            info.base_name: info.size
            for info in self._fs.get_file_info(selector)
            if info.type == fs.FileType.File and not info.base_name.endswith(_UNFINISHED)
        }

    def names(self, folder: str) -> list[str]:
        """The finished files right below a folder. On a disk this is quick enough to be asked after every commit."""
        if not self.is_local:
            return list(self.sizes(folder))
        try:
            return [name for name in os.listdir(self._path(folder)) if not name.endswith(_UNFINISHED)]
        except FileNotFoundError:
            return []

    def unfinished(self, folder: str) -> list[str]:
        """What is being written right below a folder, or was when its writer was killed."""
        selector = fs.FileSelector(self._path(folder), allow_not_found=True)
        return [info.base_name for info in self._fs.get_file_info(selector) if info.base_name.endswith(_UNFINISHED)]

    def remove_unfinished(self, folder: str) -> None:
        """Throw away what a crash left half written."""
        self.delete(f"{folder}/{name}" for name in self.unfinished(folder))

    def holds_anything(self) -> bool:
        """True when there is a file or a folder in it."""
        return bool(self._fs.get_file_info(fs.FileSelector(self._root, allow_not_found=True)))

    def remove_folder(self, folder: str) -> None:
        """Remove a folder with all that is in it; one that is not there is fine."""
        with suppress(FileNotFoundError):
            self._fs.delete_dir(self._path(folder))
        self._made.discard(folder)

    def delete(self, names: Iterable[str]) -> None:
        """Remove files; those already gone are fine."""
        paths = [self._path(name) for name in names]
        if self.is_local:
            for path in paths:
                self._delete(path)
        elif paths:
            with ThreadPoolExecutor(max_workers=_REQUESTS) as pool:
                list(pool.map(self._delete, paths))

    def _delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.delete_file(path)

    def make_folder(self, folder: str) -> None:
        """Make a folder, and those above it, where there are folders. On a disk nobody else can enter them."""
        if not self._renames or folder in self._made:
            return
        if self.is_local:
            private_files.make_folder(self._root)
            above = ""
            for part in filter(None, folder.split("/")):
                above = f"{above}/{part}"
                private_files.make_folder(self._root + above)
        else:
            self._fs.create_dir(self._path(folder), recursive=True)
        self._made.add(folder)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root


class _LocalAppend:
    def __init__(self, path: str, flags: int) -> None:
        self._descriptor = private_files.open_file(path, os.O_WRONLY | os.O_APPEND | flags)

    def write(self, data: "bytes | pa.Buffer") -> None:
        if os.write(self._descriptor, data) != len(data):
            raise OSError(28, "No space left on device")

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        os.close(self._descriptor)


class _LocalRange:
    def __init__(self, path: str) -> None:
        self._descriptor = private_files.open_file(path, os.O_RDONLY)

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, offset)

    def close(self) -> None:
        os.close(self._descriptor)


def _open(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of an address, and the path in it."""
    if uri.startswith("s3://") and "allow_delayed_open" not in uri:
        # A small object is one request then, and not three: every commit writes one.
        with suppress(OSError, ValueError, pa.ArrowException):
            delayed: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(
                f"{uri}{'&' if '?' in uri else '?'}allow_delayed_open=true"
            )
            return delayed
    opened: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    return opened


def is_network_path(path: Path) -> bool:
    """True for a directory that another machine keeps, as Linux tells; elsewhere it is not known, and taken for True."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return True
    place = path.resolve()
    inside = [(mount[1], mount[2]) for mount in mounts if place.is_relative_to(mount[1])]
    kind = max(inside, key=lambda mount: len(mount[0]), default=("", ""))[1]
    return kind.startswith(("nfs", "cifs", "smb", "fuse", "ceph", "gluster", "lustre", "beegfs", "gpfs", "9p", "afs"))
