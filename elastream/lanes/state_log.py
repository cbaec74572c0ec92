"""The log of an operator's states: what changed, in order, and now and then a key group as a whole.

A group is what its whole says and all changes behind it. A change goes when every group in it has a newer whole.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from elastream.lanes.runs import cut
from elastream.lanes.segments import Slice
from elastream.lanes.state_sums import Sums


class Whole(NamedTuple):
    """A key group as it was after all changes before number `since`."""

    since: int
    keys: int
    size: int
    slices: list[Slice]
    checksum: int = 0
    """Of what was written; 0: not recorded."""


class Change(NamedTuple):
    """One change. They are numbered from 0 on."""

    number: int
    slice: Slice
    sums: Sums = b""
    """The checksums of its groups before and after it, see `StateChange`."""


NOTHING = Whole(0, 0, 0, [])
"""A group that was never written: empty at the beginning."""


class StateLog:
    """Of one operator."""

    def __init__(self, next_number: int = 0) -> None:
        self.next_number = next_number
        self.changes: deque[Change] = deque()
        self.wholes: dict[int, Whole] = {}
        self.rows = 0
        """Of all changes that are kept."""
        self._groups: deque[frozenset[int]] = deque()
        self._last: dict[int, int] = {}

    def last_change(self, group: int) -> int:
        """The number of the newest change of a group; below 0 when there is none."""
        return self._last.get(group, -1)

    @property
    def is_empty(self) -> bool:
        """True when nothing was ever remembered."""
        return not self.next_number and not self.wholes

    def whole(self, group: int) -> Whole:
        return self.wholes.get(group, NOTHING)

    @property
    def keys(self) -> int:
        """As many as there were when the groups were last written whole."""
        return sum(whole.keys for whole in self.wholes.values())

    def add(self, piece: Slice, sums: Sums = b"") -> None:
        self.put(Change(self.next_number, piece, sums))
        self.next_number += 1

    def put(self, change: Change) -> None:
        self.changes.append(change)
        groups = frozenset(group for group, _ in cut(change.slice.runs, change.slice.first, change.slice.rows))
        self._groups.append(groups)
        self._last.update(dict.fromkeys(groups, change.number))
        self.rows += change.slice.rows

    def add_whole(self, group: int, whole: Whole) -> list[Slice]:
        """A group was written whole; gives the slices that are not needed any more.

        Changes from `whole.since` on stay. One that is older than the last is not used: changes behind it may be gone.
        """
        if whole.since < self.whole(group).since:
            return list(whole.slices)
        released = list(self.whole(group).slices)
        self.wholes[group] = whole
        while self.changes and all(self.whole(g).since > self.changes[0].number for g in self._groups[0]):
            gone = self.changes.popleft()
            self._groups.popleft()
            self.rows -= gone.slice.rows
            released.append(gone.slice)
        return released

    def oldest_groups(self) -> frozenset[int]:
        """Those that keep the oldest change from going."""
        if not self.changes:
            return frozenset()
        number = self.changes[0].number
        return frozenset(group for group in self._groups[0] if self.whole(group).since <= number)

    def since(self, groups: Iterable[int], number: int) -> Iterator[Change]:
        """The changes of some groups from a number on."""
        wanted = frozenset(groups)
        for change, found in zip(self.changes, self._groups, strict=True):
            if change.number >= number and not wanted.isdisjoint(found):
                yield change

    def has_since(self, group: int, number: int) -> bool:
        """True when every change of a group from a number on is kept: who knows what was before needs no whole."""
        first = self.changes[0].number if self.changes else self.next_number
        return number >= first or self.last_change(group) < number

    def rows_since(self, number: int) -> int:
        """Of the changes from a number on."""
        return sum(change.slice.rows for change in reversed(self.changes) if change.number >= number)

    def slices(self) -> Iterator[Slice]:
        for change in self.changes:
            yield change.slice
        for whole in self.wholes.values():
            yield from whole.slices
