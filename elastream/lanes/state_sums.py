"""Checksums of key groups, by which the audit compares snapshots, changes and what hosts had.

The checksum of a group is the sum of those of its records: it does not depend on their order, and a change updates it without
reading the rest. A ledger has it in four bytes. 0 means that it was not recorded.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

Sums = bytes
"""Two numbers of four bytes per run of a change's key groups, the group's checksums before and after; empty: not recorded."""

_MODULUS = (1 << 32) - 1
_PAIR = struct.Struct("<II")


def record_sum(group: int, key: bytes, record: bytes) -> int:
    """The checksum of one record. The key's length is part of it, for where a key ends counts too."""
    return zlib.crc32(record, zlib.crc32(key, group) ^ len(key))


def recorded(total: int) -> int:
    """A sum of checksums as a ledger has it; never 0."""
    return total % _MODULUS + 1


class GroupSums(NamedTuple):
    """The checksums of a key group before and after a change; 0: not recorded."""

    before: int
    after: int


def packed_sums(sums: Iterable[GroupSums]) -> Sums:
    numbers = list(chain.from_iterable(sums))
    return struct.pack(f"<{len(numbers)}I", *numbers)


def unpacked_sums(sums: Sums) -> Iterator[GroupSums]:
    return map(GroupSums._make, _PAIR.iter_unpack(sums))
