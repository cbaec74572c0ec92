"""Runs: the key groups of a batch's rows, in order, so that rows of one group can be found without reading the batch.

Stored as little-endian numbers of four bytes, one per run: how many rows, and their group. Rows that were not shared out by a
key have no runs.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

Runs = bytes

_GROUP_BITS = 10
_MOST_ROWS = (1 << (32 - _GROUP_BITS)) - 1


def packed(runs: Iterable[tuple[int, int]]) -> Runs:
    """From (group, rows) in the order of the rows."""
    numbers = []
    for group, rows in runs:
        while rows > _MOST_ROWS:
            numbers.append(_MOST_ROWS << _GROUP_BITS | group)
            rows -= _MOST_ROWS
        numbers.append(rows << _GROUP_BITS | group)
    return struct.pack(f"<{len(numbers)}I", *numbers)


def unpacked(runs: Runs) -> Iterator[tuple[int, int]]:
    for (number,) in struct.iter_unpack("<I", runs):
        yield number & (1 << _GROUP_BITS) - 1, number >> _GROUP_BITS


def cut(runs: Runs, first: int, rows: int) -> Iterator[tuple[int, int]]:
    """The runs of some rows in the middle."""
    at, stop = 0, first + rows
    for group, count in unpacked(runs):
        inside = min(at + count, stop) - max(at, first)
        if inside > 0:
            yield group, inside
        at += count
        if at >= stop:
            return


def shared_out(runs: Runs, first: int, rows: int, owner: Callable[[int], int]) -> list[tuple[int, int, int]]:
    """Rows `first` to `first + rows` as (owner, first, rows), where neighbours of one owner stay together."""
    found = []
    at = first
    for lane, together in groupby(cut(runs, first, rows), key=lambda run: owner(run[0])):
        count = sum(count for _, count in together)
        found.append((lane, at, count))
        at += count
    return found


def are_whole(runs: Runs, rows: int, groups: int) -> bool:
    """True when they tell of so many rows at least, and of groups that there are."""
    if len(runs) % 4:
        return False
    pairs = list(unpacked(runs))
    return sum(count for _, count in pairs) >= rows and all(group < groups for group, _ in pairs)
