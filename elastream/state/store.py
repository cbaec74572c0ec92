"""The states that a host has: keys and records by operator and key group, in an embedded store.

The store is LMDB, in a file without a name: what is used of it is in memory, and the kernel writes the rest to disk when memory
is short. Nothing of it outlives the process; what must last is in changelogs.
"""

import hashlib
import mmap
import os
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from elastream.errors import BaseUnusable
from elastream.lanes.state_sums import record_sum

MOST_BYTES = 1 << 40
"""A store without a bound may grow to this size: addresses that are set aside, not memory nor disk."""

LEAST_FREE_BYTES = 64 << 20
"""A store stops when its disk has no more than this: LMDB writes by memory, and a page that finds no place ends the process."""

BETWEEN_LOOKS = 64
"""Changes between two looks at the disk."""

LONGEST_KEY = 480
"""LMDB takes keys of up to 511 bytes; longer ones stand under their hash."""

_LONG = b"\xc1"
"""What no key in MessagePack begins with."""

_LENGTH = struct.Struct("<I")
_TIME, _ZERO = struct.Struct(">Q"), 1 << 63
"""Of timers, in microseconds, so that their bytes have the order of their times."""

CLOCK, WATERMARK = 0, 1
"""By what a key is woken."""

TimersOf = Callable[[bytes], tuple[list[float], list[float]]]
"""When a record is to be woken: by the clock, by the watermark."""

Change = tuple[int, bytes, bytes | None]
"""Key group, key, and its record, or None when the key is forgotten."""


class Facts(NamedTuple):
    """What a key group amounts to. The checksum is the sum of those of its records, so it does not depend on their order."""

    keys: int
    size: int
    checksum: int


_NONE = Facts(0, 0, 0)


class StateReading:
    """The states of one operator as they were when it was begun."""

    def __init__(self, transaction: lmdb.Transaction) -> None:
        self._transaction = transaction

    def get(self, group: int, key: bytes) -> bytes | None:
        found = self._transaction.get(_place(group, key))
        return None if found is None else _record(key, bytes(found))


class StateStore:
    """Of one host. Several threads may use it; each change is whole or did not happen."""

    def __init__(
        self,
        operators: Sequence[str],
        folder: str | None = None,
        timers_of: Mapping[str, TimersOf] | None = None,
        most_bytes: int | None = None,
    ) -> None:
        """`timers_of`: of the operators whose keys are woken; `most_bytes`: no change makes the store larger than that."""
        self._timers_of = dict(timers_of or {})
        self._most_bytes = MOST_BYTES if most_bytes is None else most_bytes
        place = Path(tempfile.mkdtemp(prefix="elastream-state-", dir=folder))
        try:
            self._env = lmdb.open(
                str(place),
                map_size=self._most_bytes // mmap.PAGESIZE * mmap.PAGESIZE,
                max_dbs=max(1, 2 * len(operators)),
                sync=False,
                metasync=False,
                writemap=True,
                map_async=True,
                readahead=False,
                max_readers=1024,
                mode=0o600,
            )
            self._file = os.open(place / "data.mdb", os.O_RDONLY)
            self._looks = 0
            self._lock = threading.Lock()
            self._sums: dict[tuple[str, int], Facts] = {}
            self._tables = {name: self._env.open_db(name.encode()) for name in operators}
            self._timers = {name: self._env.open_db(f"{name}/timers".encode()) for name in self._timers_of}
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
        more: dict[int, list[int]] = {}
        with self._writing(operator) as transaction:
            for group, key, record in changes:
                place = _place(group, key)
                new = None if record is None else _packed(key, record)
                known = transaction.pop(place) if new is None else transaction.replace(place, new)
                old = None if known is None else bytes(known)
                if operator in self._timers:
                    self._set_timers(transaction, operator, place, None if old is None else _record(key, old), record)
                sums = more.get(group)
                if sums is None:
                    sums = more[group] = [0, 0, 0]
                _count(sums, group, key, old, -1)
                _count(sums, group, key, new, 1)
        with self._lock:
            for group, sums in more.items():
                before = self._sums.get((operator, group), _NONE)
                self._sums[operator, group] = Facts(*(a + b for a, b in zip(before, sums, strict=True)))

    def replace_group(self, operator: str, group: int, records: Sequence[tuple[bytes, bytes]]) -> None:
        """All of a group, whatever was known of it before."""
        pairs = [(_place(group, key), _packed(key, record)) for key, record in records]
        sums = [0, 0, 0]
        for (key, _), (_, stored) in zip(records, pairs, strict=True):
            _count(sums, group, key, stored, 1)
        with self._writing(operator) as transaction:
            self._clear(transaction, operator, group)
            with transaction.cursor() as cursor:
                cursor.putmulti(pairs)
            for key, record in records if operator in self._timers else ():
                self._set_timers(transaction, operator, _place(group, key), None, record)
        with self._lock:
            self._sums[operator, group] = Facts(*sums)

    def forget(self, operator: str, groups: Iterable[int]) -> None:
        gone = list(groups)
        with self._writing(operator) as transaction:
            for group in gone:
                self._clear(transaction, operator, group)
        with self._lock:
            for group in gone:
                self._sums.pop((operator, group), None)

    def due(self, operator: str, kind: int, groups: Iterable[int], until_s: float) -> list[tuple[float, int, bytes]]:
        """Keys of some groups that are to be woken by then: (when, group, key), the earliest first."""
        found: list[tuple[float, int, bytes]] = []
        with (
            self._env.begin(db=self._tables[operator]) as transaction,
            transaction.cursor(db=self._timers[operator]) as cursor,
        ):
            for group in groups:
                for at_s, rest in _from(cursor, kind, group):
                    if at_s > until_s:
                        break
                    place = bytes([group]) + rest
                    stored = transaction.get(place)
                    if stored is not None:
                        found.append((at_s, group, _key(place, bytes(stored))))
        return sorted(found)

    def first_timer(self, operator: str, kind: int, groups: Iterable[int]) -> float | None:
        """When the first key of some groups is to be woken; None: never."""
        with self._env.begin(db=self._timers[operator]) as transaction, transaction.cursor() as cursor:
            firsts = [next(_from(cursor, kind, group), None) for group in groups]
        return min((first[0] for first in firsts if first is not None), default=None)

    def group(self, operator: str, group: int) -> list[tuple[bytes, bytes]]:
        """All keys of a group and their records, in the order of their bytes."""
        with self._env.begin(db=self._tables[operator]) as transaction, transaction.cursor() as cursor:
            return list(_of_group(cursor, group))

    def facts(self, operator: str, group: int) -> Facts:
        """Kept up to date by every change, from what the store had and has: a key group is compared in no time."""
        return self._sums.get((operator, group), _NONE)

    def close(self) -> None:
        self._env.close()
        os.close(self._file)

    @contextmanager
    def _writing(self, operator: str) -> Iterator[lmdb.Transaction]:
        self._check_room(operator)
        try:
            with self._env.begin(db=self._tables[operator], write=True) as transaction:
                yield transaction
        except lmdb.MapFullError:
            raise BaseUnusable(
                f"state of {operator!r}: this host would remember more than StateSettings(bytes_per_host={self._most_bytes:_}) allows; "
                "start again with the same base and a larger bound, or with more hosts"
            ) from None

    def _check_room(self, operator: str) -> None:
        if self._looks % BETWEEN_LOOKS == 0:
            disk = os.fstatvfs(self._file)
            if disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES:
                raise BaseUnusable(
                    f"state of {operator!r}: the disk on which Python keeps temporary files has less than "
                    f"{LEAST_FREE_BYTES >> 20} MiB left; make room there, or set TMPDIR, then start again with the same base"
                )
        self._looks += 1

    def _set_timers(
        self, transaction: lmdb.Transaction, operator: str, place: bytes, old: bytes | None, new: bytes | None
    ) -> None:
        timers_of, table = self._timers_of[operator], self._timers[operator]
        before, after = (([], []) if record is None else timers_of(record) for record in (old, new))
        for kind in (CLOCK, WATERMARK):
            for at_s in before[kind]:
                if at_s not in after[kind]:
                    transaction.delete(_timer(kind, at_s, place), db=table)
            for at_s in after[kind]:
                if at_s not in before[kind]:
                    transaction.put(_timer(kind, at_s, place), b"", db=table)

    def _clear(self, transaction: lmdb.Transaction, operator: str, group: int) -> None:
        _clear(transaction, None, bytes([group]))
        if operator in self._timers:
            for kind in (CLOCK, WATERMARK):
                _clear(transaction, self._timers[operator], bytes([kind, group]))


def _clear(transaction: lmdb.Transaction, table: Any, prefix: bytes) -> None:
    with transaction.cursor(db=table) as cursor:
        cursor.set_range(prefix)
        # Behind the last of all keys there is an empty one.
        while bytes(cursor.key()[: len(prefix)]) == prefix:
            cursor.delete()


def _count(sums: list[int], group: int, key: bytes, stored: bytes | None, sign: int) -> None:
    """Add a record to what a group amounts to, or take it away."""
    if stored is not None:
        record = _record(key, stored)
        sums[0] += sign
        sums[1] += sign * (len(key) + len(record))
        sums[2] += sign * record_sum(group, key, record)


def _timer(kind: int, at_s: float, place: bytes) -> bytes:
    """In the order of kind, group and time."""
    return bytes([kind, place[0]]) + _TIME.pack(round(at_s * 1e6) + _ZERO) + place[1:]


def _from(cursor: lmdb.Cursor, kind: int, group: int) -> Iterator[tuple[float, bytes]]:
    """The timers of a group, the earliest first, each with the rest of its key's place."""
    prefix = bytes([kind, group])
    found = cursor.set_range(prefix)
    while found:
        timer = bytes(cursor.key())
        if timer[:2] != prefix:
            return
        (micros,) = _TIME.unpack_from(timer, 2)
        yield (micros - _ZERO) / 1e6, timer[2 + _TIME.size :]
        found = cursor.next()


def _key(place: bytes, stored: bytes) -> bytes:
    if place[1:2] != _LONG:
        return place[1:]
    (length,) = _LENGTH.unpack_from(stored)
    return stored[_LENGTH.size : _LENGTH.size + length]


def _of_group(cursor: lmdb.Cursor, group: int) -> Iterator[tuple[bytes, bytes]]:
    if not cursor.set_range(bytes([group])):
        return
    for found in cursor:
        place, stored = bytes(found[0]), bytes(found[1])
        if place[0] != group:
            return
        key = _key(place, stored)
        yield key, _record(key, stored)


def _place(group: int, key: bytes) -> bytes:
    if len(key) <= LONGEST_KEY:
        return bytes([group]) + key
    return bytes([group]) + _LONG + hashlib.blake2b(key, digest_size=32).digest()


def _packed(key: bytes, record: bytes) -> bytes:
    """As it is stored; with a long key in front, whose place has only its hash."""
    return record if len(key) <= LONGEST_KEY else _LENGTH.pack(len(key)) + key + record


def _record(key: bytes, stored: bytes) -> bytes:
    return stored if len(key) <= LONGEST_KEY else stored[_LENGTH.size + len(key) :]
