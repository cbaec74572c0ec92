"""Segments as files: a writer appends batches to files of its own, a reader gets slices back.

A slice names one record batch by its place in a file, so reading it is one ranged read, and needs no footer.
"""

import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pyarrow as pa
from pyarrow import ipc

from elastream.errors import BaseUnusable, Damaged
from elastream.lanes.runs import Runs, cut, packed
from elastream.lanes.segments import (
    BATCH_BYTES,
    FOLDER,
    STATE,
    Appended,
    LaneId,
    LaneOfOrigin,
    SchemaId,
    Slice,
    WrittenFor,
)
from elastream.lanes.store import AppendFile, RangeFile, Store

ROLL_BYTES = 16 << 20
ROLL_S = 2.0
"""A file is ended when it is this large or this old: it can only be removed as a whole."""

CACHE_BYTES = 64 << 20
"""Batches that a writer keeps in memory, for readers in its own process."""

OPEN_FILES = 64
"""Files that a reader keeps open."""

Batches = Mapping[WrittenFor, list[pa.RecordBatch]] | Mapping[LaneId, list[pa.RecordBatch]]

NO_RUNS: Mapping[WrittenFor, Runs] = {}

_Piece = tuple[WrittenFor, pa.RecordBatch, pa.Buffer, SchemaId, Runs]


class Written(NamedTuple):
    """What a write did. `release` it when the receipt that names the slices is on its way."""

    appended: list[Appended]
    files: list["_File"]


class _File:
    def __init__(self, name: str, open_file: AppendFile | None, began_s: float) -> None:
        self.name = name
        self.open_file = open_file
        self.size = 0
        self.began_s = began_s
        self.writers = 0
        self.ended = False


class SegmentWriter:
    """Appends to one file at a time, of a host or a task; several threads may write.

    Where files cannot be appended to so that others see it, each write makes a file of its own. `kept` rows, which wait to be
    read from outside, and what operators remember go to files apart: they stay longer than the others.
    """

    def __init__(
        self,
        store: Store,
        prefix: str,
        *,
        appends: bool,
        cache: "BatchCache | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._prefix = prefix
        self._appends = appends
        self._cache = cache
        self._lock = threading.Lock()
        self._number = 0
        self._files: dict[str, _File] = {}
        """By what they hold: nothing, `k` and `s` for tuples that wait, those that are kept, and states."""
        self._ended: list[str] = []

    def write(
        self,
        batches: Batches,
        schemas: Mapping[str, SchemaId],
        kept: frozenset[str],
        runs: Mapping[WrittenFor, Runs] = NO_RUNS,
    ) -> Written:
        """Write what goes to each lane. `schemas`: the id of the columns of each operator that has lanes; `runs`: the key
        groups of all rows for a lane, where a key chose it."""
        pieces = [
            (lane, batch, batch.serialize(), schemas[lane.operator], its_runs)
            for lane, found in batches.items()
            for batch, its_runs in _sized(found, runs.get(lane, b""))
        ]
        written = Written([], [])
        try:
            for shelf in ("", "k", "s"):
                mine = [piece for piece in pieces if _shelf(piece[0].operator, kept) == shelf]
                if mine:
                    written.appended.extend(self._write(mine, shelf, written.files))
        except BaseException:
            # No receipt will name what was written of it.
            self.release(written)
            raise
        return written

    def _write(self, pieces: list[_Piece], shelf: str, files: list[_File]) -> list[Appended]:
        checksums = [zlib.crc32(piece[2]) for piece in pieces]
        with self._lock:
            file = self._current(shelf)
            file.writers += 1
            files.append(file)
            at = file.size
            if self._appends:
                self._append(file, _joined(pieces))
        if not self._appends:
            # It is nobody else's, so others need not wait until the store has answered.
            file.ended = True
            self._store.write(f"{FOLDER}/{file.name}", _joined(pieces))
        appended = []
        for (lane, batch, data, schema, runs), checksum in zip(pieces, checksums, strict=True):
            origin = lane.origin if isinstance(lane, LaneOfOrigin) else ""
            piece = Slice(file.name, at, data.size, checksum, schema, 0, batch.num_rows, runs, origin)
            appended.append(Appended(lane.operator, lane.lane, piece))
            if self._cache is not None and not shelf:
                self._cache.put((file.name, at), batch, data.size)
            at += data.size
        return appended

    def release(self, written: Written) -> None:
        """The receipt is on its way: a file that has ended, and of which no other receipt is outstanding, may be told of."""
        with self._lock:
            for file in written.files:
                file.writers -= 1
                if file.ended and not file.writers:
                    self._ended.append(file.name)

    def ended(self) -> list[str]:
        """Files that were ended since this was last asked: nothing will be added to them."""
        if not self._ended:
            return []
        with self._lock:
            names, self._ended = self._ended, []
            return names

    def close(self) -> None:
        with self._lock:
            for file in self._files.values():
                self._end(file)
            self._files = {}

    def _current(self, shelf: str) -> _File:
        file = self._files.get(shelf)
        if file is not None and (file.size >= ROLL_BYTES or self._clock() - file.began_s >= ROLL_S):
            del self._files[shelf]
            self._end(file)
            file = None
        if file is None or not self._appends:
            self._number += 1
            name = f"{self._prefix}-{self._number:06d}{shelf}.arrow"
            open_file = self._store.create(f"{FOLDER}/{name}") if self._appends else None
            file = _File(name, open_file, self._clock())
            if self._appends:
                self._files[shelf] = file
        return file

    def _append(self, file: _File, data: "bytes | pa.Buffer") -> None:
        assert file.open_file is not None
        try:
            file.open_file.write(data)
        except OSError:
            # Where the next batch would begin is not known any more.
            self._end(file)
            self._files = {kind: other for kind, other in self._files.items() if other is not file}
            raise
        file.size += len(data)

    def _end(self, file: _File) -> None:
        file.ended = True
        if file.open_file is not None:
            file.open_file.close()
            file.open_file = None
        if not file.writers:
            self._ended.append(file.name)


class BatchCache:
    """The batches that were written last, by their places. Several threads may use it."""

    def __init__(self, most_bytes: int = CACHE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._batches: OrderedDict[tuple[str, int], tuple[pa.RecordBatch, int]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, place: tuple[str, int], batch: pa.RecordBatch, size: int) -> None:
        with self._lock:
            if place in self._batches:
                self._bytes -= self._batches[place][1]
            self._batches[place] = batch, size
            self._bytes += size
            while self._bytes > self._most_bytes:
                _, (_, gone) = self._batches.popitem(last=False)
                self._bytes -= gone

    def get(self, place: tuple[str, int]) -> pa.RecordBatch | None:
        found = self._batches.get(place)
        return None if found is None else found[0]

    def drop(self, place: tuple[str, int]) -> None:
        """A lane reads a batch once, most of the time."""
        with self._lock:
            found = self._batches.pop(place, None)
            if found is not None:
                self._bytes -= found[1]


class SegmentReader:
    """Reads slices, checks them, and remembers the files it has opened. Several threads may use it."""

    def __init__(self, store: Store, cache: BatchCache | None = None) -> None:
        self._store = store
        self._cache = cache
        self._lock = threading.Lock()
        self._open: OrderedDict[str, RangeFile] = OrderedDict()

    def read(self, piece: Slice, schema: pa.Schema) -> pa.RecordBatch:
        """The rows a slice means, after its checksum was found right."""
        if self._cache is not None:
            batch = self._cache.get((piece.segment, piece.offset))
            if batch is not None:
                if piece.first + piece.rows >= batch.num_rows:
                    self._cache.drop((piece.segment, piece.offset))
                return _cut(batch, piece)
        data = self._bytes(piece)
        if len(data) != piece.length or zlib.crc32(data) != piece.crc32:
            raise Damaged(
                f"segment {FOLDER}/{piece.segment} in {self._store}: bytes {piece.offset}..{piece.offset + piece.length} do not "
                f"have checksum {piece.crc32}; restore the file from a copy and start again"
            )
        try:
            return _cut(ipc.read_record_batch(pa.py_buffer(data), schema), piece)
        except pa.ArrowException as error:
            raise Damaged(
                f"segment {FOLDER}/{piece.segment} in {self._store}: bytes {piece.offset}..{piece.offset + piece.length} are no "
                f"rows of their columns: {error}; restore {FOLDER} and the ledger from a copy and start again"
            ) from None

    def _bytes(self, piece: Slice) -> bytes | pa.Buffer:
        name = f"{FOLDER}/{piece.segment}"
        try:
            if not self._store.is_local:
                return self._store.read_range(name, piece.offset, piece.length)
            with self._lock:
                return self._file(piece.segment, name).read(piece.offset, piece.length)
        except FileNotFoundError:
            raise Damaged(
                f"segment {name} in {self._store}: it is gone, but the ledger needs it; restore it and start again"
            ) from None
        except OSError as error:
            raise BaseUnusable(
                f"segment {name} in {self._store}: it cannot be read: {error.strerror or error}; mend the storage or its permissions, "
                "then start again with the same base"
            ) from None

    def _file(self, segment: str, name: str) -> RangeFile:
        found = self._open.get(segment)
        if found is not None:
            self._open.move_to_end(segment)
            return found
        file = self._open[segment] = self._store.open(name)
        if len(self._open) > OPEN_FILES:
            _, oldest = self._open.popitem(last=False)
            oldest.close()
        return file

    def close(self) -> None:
        with self._lock:
            for file in self._open.values():
                file.close()
            self._open.clear()


def _shelf(operator: str, kept: frozenset[str]) -> str:
    return "s" if operator.endswith(STATE) else "k" if operator in kept else ""


def _joined(pieces: list[_Piece]) -> "bytes | pa.Buffer":
    return b"".join(piece[2] for piece in pieces) if len(pieces) > 1 else pieces[0][2]


def _cut(batch: pa.RecordBatch, piece: Slice) -> pa.RecordBatch:
    if piece.first == 0 and piece.rows == batch.num_rows:
        return batch
    return batch.slice(piece.first, piece.rows)


def _sized(pieces: list[pa.RecordBatch], runs: Runs) -> list[tuple[pa.RecordBatch, Runs]]:
    """The pieces as one, cut into batches of about `BATCH_BYTES`, each with its part of the runs."""
    filled = [piece for piece in pieces if piece.num_rows]
    if not filled:
        return []
    if len(filled) == 1 and filled[0].nbytes <= BATCH_BYTES:
        return [(filled[0], runs)]
    sized, at = [], 0
    for whole in pa.Table.from_batches(filled).combine_chunks().to_batches():
        rows = max(1, int(BATCH_BYTES * whole.num_rows / max(1, whole.nbytes)))
        for first in range(0, whole.num_rows, rows):
            batch = whole.slice(first, rows)
            sized.append((batch, packed(cut(runs, at, batch.num_rows))))
            at += batch.num_rows
    return sized
