"""Records of a log: bytes with their length and checksums, one after another in a file that is appended to."""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from elastream.errors import Damaged

MAGIC = b"elastream-ledger 2\n"
"""How every file begins; the number is the version of the format."""

_HEAD = struct.Struct("<III")
"""The payload's length, its checksum, and the checksum of these two: a turned length must not pass for a cut."""

_TAIL = b"\n"
"""How a record ends: not in a zero, so zeros up to the end of the file are what a power cut left."""


class Record(NamedTuple):
    """A record in a file."""

    payload: bytes
    end: int
    """The byte behind it."""


def pack(payload: bytes) -> bytes:
    """The bytes to append."""
    head = struct.pack("<II", len(payload), zlib.crc32(payload))
    return head + struct.pack("<I", zlib.crc32(head)) + payload + _TAIL


def begin_of(data: bytes, where: str) -> int:
    """Where the first record of a file begins. Raises when the file is of another format."""
    if not data.startswith(MAGIC):
        raise Damaged(f"{where}: not a ledger of this version; restore the file from a copy and start again")
    return len(MAGIC)


def records(data: bytes, where: str, at: int, offset: int = 0) -> Iterator[Record]:
    """The whole records from byte `at` on. One that is cut off at the end is left out: it did not happen.

    `offset` is where the data begin in the file, for what an error says.
    """
    while (end := end_of(data, where, at, offset)) is not None:
        checksum = _HEAD.unpack_from(data, at)[1]
        payload = data[at + _HEAD.size : end - len(_TAIL)]
        if zlib.crc32(payload) != checksum or data[end - len(_TAIL) : end] != _TAIL:
            if _is_zero_from_inside(data, at, end):
                return
            raise _damaged(where, at + offset)
        yield Record(payload, end)
        at = end


def end_of(data: bytes, where: str, at: int, offset: int = 0) -> int | None:
    """Where the record at byte `at` ends, as its head tells; None when it is cut off, or there is none."""
    start = at + _HEAD.size
    if start > len(data):
        return None
    length, _, checksum = _HEAD.unpack_from(data, at)
    if zlib.crc32(data[at : start - 4]) != checksum:
        if _is_zero_from_inside(data, at, start):
            return None
        raise _damaged(where, at + offset)
    end: int = start + length + len(_TAIL)
    return end if end <= len(data) else None


def _is_zero_from_inside(data: bytes, at: int, end: int) -> bool:
    """True when a record that should end at `end` becomes zeros, and so does all behind it: a power cut ended the write."""
    return not any(data[end - 1 :]) and at + len(data[at:].rstrip(b"\0")) < end


def _damaged(where: str, at: int) -> Damaged:
    return Damaged(
        f"{where}: the record at byte {at} does not have its checksum; restore the file from a copy and start again: nothing "
        "after it was applied"
    )
