"""Clean-up of segments: those whose tuples are consumed, and those that no entry ever named."""

from collections import deque
from collections.abc import Iterable

from elastream.lanes.book import Book
from elastream.lanes.segments import FOLDER
from elastream.lanes.store import Store

GRACE_TICKS = 8
"""A consumed segment stays this long, for a reader that is a little behind."""

SWEEP_EVERY = 1024
"""Ticks between two looks for segments that a failed attempt left."""


class Cleanup:
    """Knows which segments may go, and when."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._freed: deque[tuple[int, str]] = deque()

    def after_commit(self, book: Book, freed: list[str]) -> None:
        self._freed.extend((book.tick, segment) for segment in freed)
        gone = []
        while self._freed and self._freed[0][0] <= book.tick - GRACE_TICKS:
            gone.append(f"{FOLDER}/{self._freed.popleft()[1]}")
        self._store.delete(gone)
        if book.tick % SWEEP_EVERY == 0:
            self.sweep(book)

    def sweep(self, book: Book, keep: Iterable[str] = ()) -> int:
        """Remove segments of ticks that are committed but that nothing names; says how many. Those to keep go a little later."""
        self._freed.extend((book.tick, segment) for segment in keep)
        named = book.segments() | {segment for _, segment in self._freed}
        orphans = [
            f"{FOLDER}/{name}"
            for name in self._store.sizes(FOLDER)
            if name not in named and name[:12].isdigit() and int(name[:12]) <= book.tick
        ]
        self._store.delete(orphans)
        return len(orphans)
