"""A directory on any filesystem that pyarrow opens: whole files written at once, read whole or in part."""

import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from elastream.errors import BaseUnusable

_UNFINISHED = ".unfinished"


class Store:
    """The base directory of a run. Names are relative to it, with `/` between folders."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        try:
            if "://" in uri:
                self._fs, self._root = fs.FileSystem.from_uri(uri)
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
    def local_path(self) -> Path:
        """Where it is on this machine; only when `is_local`."""
        return Path(self._root)

    def write(self, name: str, data: "bytes | pa.Buffer") -> None:
        """Write a whole file: a reader sees all of it or nothing, also after a crash."""
        self._make_folder(name)
        path = self._path(name)
        target = path + _UNFINISHED if self._renames else path
        with self._fs.open_output_stream(target) as stream:
            stream.write(data)
        if self._renames:
            self._fs.move(target, path)

    def read(self, name: str) -> bytes:
        with self._fs.open_input_file(self._path(name)) as file:
            return bytes(file.read())

    def read_range(self, name: str, offset: int, length: int) -> pa.Buffer:
        with self._fs.open_input_file(self._path(name)) as file:
            file.seek(offset)
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

    def remove_unfinished(self, folder: str) -> None:
        """Throw away what a crash left half written."""
        selector = fs.FileSelector(self._path(folder), allow_not_found=True)
        for info in self._fs.get_file_info(selector):
            if info.base_name.endswith(_UNFINISHED):
                self._delete(info.path)

    def delete(self, names: Iterable[str]) -> None:
        """Remove files; those already gone are fine."""
        paths = [self._path(name) for name in names]
        if self.is_local:
            for path in paths:
                self._delete(path)
        elif paths:
            # An object store answers each request after milliseconds, and has no call for many.
            with ThreadPoolExecutor(max_workers=16) as pool:
                list(pool.map(self._delete, paths))

    def _delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.delete_file(path)

    def _make_folder(self, name: str) -> None:
        folder = os.path.dirname(name)
        if self._renames and folder not in self._made:
            self._fs.create_dir(self._path(folder), recursive=True)
            self._made.add(folder)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root
