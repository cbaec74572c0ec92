"""The states that a host has: keys and records by operator and key group, in an embedded store.

The store is LMDB, in a file without a name: what is used of it is in memory, and the kernel writes the rest to disk when memory
is short. Nothing of it outlives the process; what must last is in changelogs.
"""

import hashlib
import os
import struct
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import lmdb

from elastream.errors import RunFailed

MOST_BYTES = 1 << 40
"""The store may grow to this size: addresses that are set aside, not memory nor disk."""

LONGEST_KEY = 480
"""LMDB takes keys of up to 511 bytes; longer ones stand under their hash."""

_LONG = b"\xc1"
"""What no key in MessagePack begins with."""

_LENGTH = struct.Struct("<I")

Change = tuple[int, bytes, bytes | None]
"""Key group, key, and its record, or None when the key is forgotten."""


class Facts(NamedTuple):
    """What a key group amounts to. The checksum does not depend on the order."""

    keys: int
    size: int
    checksum: int


class StateReading:
    """The states of one operator as they were when it was begun."""

    def __init__(self, transaction: lmdb.Transaction) -> None:
        self._transaction = transaction

    def get(self, group: int, key: bytes) -> bytes | None:
        found = self._transaction.get(_place(group, key))
        return None if found is None else _record(key, bytes(found))


class StateStore:
    """Of one host. Several threads may use it; each change is whole or did not happen."""

    def __init__(self, operators: Sequence[str], folder: str | None = None) -> None:
        place = Path(tempfile.mkdtemp(prefix="elastream-state-", dir=folder))
        try:
            self._env = lmdb.open(
                str(place),
                map_size=MOST_BYTES,
                max_dbs=max(1, len(operators)),
                sync=False,
                metasync=False,
                writemap=True,
                map_async=True,
                readahead=False,
                max_readers=1024,
            )
            self._tables = {name: self._env.open_db(name.encode()) for name in operators}
        finally:
            # The files live as long as the process has them open, and no longer.
            for file in place.iterdir():
                os.unlink(file)
            place.rmdir()

    @contextmanager
    def reading(self, operator: str) -> Iterator[StateReading]:
        with self._env.begin(db=self._tables[operator]) as transaction:
            yield StateReading(transaction)

    def write(self, operator: str, changes: Iterable[Change]) -> None:
        with self._writing(operator) as transaction:
            for group, key, record in changes:
                if record is None:
                    transaction.delete(_place(group, key))
                else:
                    transaction.put(_place(group, key), _packed(key, record))

    def replace_group(self, operator: str, group: int, records: Iterable[tuple[bytes, bytes]]) -> None:
        """All of a group, whatever was known of it before."""
        with self._writing(operator) as transaction:
            self._clear(transaction, group)
            with transaction.cursor() as cursor:
                cursor.putmulti((_place(group, key), _packed(key, record)) for key, record in records)

    def forget(self, operator: str, groups: Iterable[int]) -> None:
        with self._writing(operator) as transaction:
            for group in groups:
                self._clear(transaction, group)

    def group(self, operator: str, group: int) -> list[tuple[bytes, bytes]]:
        """All keys of a group and their records, in the order of their bytes."""
        with self._env.begin(db=self._tables[operator]) as transaction, transaction.cursor() as cursor:
            return list(_of_group(cursor, group))

    def facts(self, operator: str, group: int) -> Facts:
        keys = size = checksum = 0
        for key, record in self.group(operator, group):
            keys += 1
            size += len(key) + len(record)
            # With the length, for where a key ends counts too.
            checksum += zlib.crc32(record, zlib.crc32(key) ^ len(key))
        return Facts(keys, size, checksum)

    def close(self) -> None:
        self._env.close()

    @contextmanager
    def _writing(self, operator: str) -> Iterator[lmdb.Transaction]:
        try:
            with self._env.begin(db=self._tables[operator], write=True) as transaction:
                yield transaction
        except (lmdb.MapFullError, lmdb.DiskError) as error:
            raise RunFailed(
                f"state of {operator!r}: cannot be written where Python keeps temporary files: {error}; make room there, or set TMPDIR"
            ) from None

    def _clear(self, transaction: lmdb.Transaction, group: int) -> None:
        with transaction.cursor() as cursor:
            cursor.set_range(bytes([group]))
            # Behind the last of all keys there is an empty one.
            while bytes(cursor.key()[:1]) == bytes([group]):
                cursor.delete()


def _of_group(cursor: lmdb.Cursor, group: int) -> Iterator[tuple[bytes, bytes]]:
    if not cursor.set_range(bytes([group])):
        return
    for found in cursor:
        place, stored = bytes(found[0]), bytes(found[1])
        if place[0] != group:
            return
        if place[1:2] == _LONG:
            (length,) = _LENGTH.unpack_from(stored)
            yield stored[_LENGTH.size : _LENGTH.size + length], stored[_LENGTH.size + length :]
        else:
            yield place[1:], stored


def _place(group: int, key: bytes) -> bytes:
    if len(key) <= LONGEST_KEY:
        return bytes([group]) + key
    return bytes([group]) + _LONG + hashlib.blake2b(key, digest_size=32).digest()


def _packed(key: bytes, record: bytes) -> bytes:
    """As it is stored; with a long key in front, whose place has only its hash."""
    return record if len(key) <= LONGEST_KEY else _LENGTH.pack(len(key)) + key + record


def _record(key: bytes, stored: bytes) -> bytes:
    return stored if len(key) <= LONGEST_KEY else stored[_LENGTH.size + len(key) :]
