"""What a run keeps in its base: entries enter, are written and applied to the book; what nobody needs any more goes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from elastream.engine.program import DEAD_LETTERS
from elastream.errors import BaseInUse, BaseUnusable
from elastream.lanes import Book, Cleanup, Entry, Hold, LaneId, Ledger, Store
from elastream.lanes.readers import acknowledged

ACKNOWLEDGE_EVERY = 16
"""Ticks between two looks at how far the readers of outputs have come."""


class Keeper:
    """Keeps the book of one run, and the base in which it is written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hold = Hold(store)
        self._ledger = Ledger(store)
        self._cleanup = Cleanup(store)
        self.book = Book()

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Take the base and read the ledger. The base is let go when the block fails."""
        self._hold.take()
        try:
            self._store.remove_unfinished("ledger")
            self._store.remove_unfinished("segments")
            self.book = self._ledger.load()
            yield
        except OSError as error:
            self._hold.release()
            raise BaseUnusable(f"base {self._store}: cannot be read and written: {error}") from error
        except BaseException:
            self._hold.release()
            raise

    def commit(self, entry: Entry) -> None:
        """Write an entry, then apply it to the book."""
        self.write(entry)
        self.book.apply(entry)

    def write(self, entry: Entry) -> None:
        """The commit alone, for an entry that the book has already."""
        self._hold.renew()
        if not self._store.is_local and self._ledger.has(entry.tick):
            raise BaseInUse(f"base {self._store}: entry {entry.tick} was written by another driver; this one stops")
        try:
            self._ledger.commit(entry)
        except OSError as error:
            raise BaseUnusable(
                f"base {self._store}: entry {entry.tick} could not be written: {error}; nothing of the tick was applied: "
                "make room or mend the permissions, then start again with the same base"
            ) from error

    def tidy(self, freed: list[str], written: frozenset[str]) -> None:
        """After a commit that freed some segments: these go, and those of the tick's own that the book does not name."""
        unused = written - self.book.segments() - set(freed)
        self._cleanup.after_commit(self.book, [*freed, *unused])
        self._ledger.tidy(self.book)

    def sweep(self, keep: Iterable[str]) -> None:
        """Remove the segments that nothing names; those to keep go a little later."""
        self._cleanup.sweep(self.book, keep)

    def acknowledged(self, outputs: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
        """What all readers of an output have read may go."""
        if self.book.tick % ACKNOWLEDGE_EVERY:
            return ()
        read = []
        for name in (*outputs, DEAD_LETTERS):
            queue = self.book.lanes.get(LaneId(name, 0))
            if queue is None or not len(queue):
                continue
            position = acknowledged(self._store, name)
            if position is not None and position > queue.consumed:
                read.append((name, 0, min(position, queue.appended) - queue.consumed))
        return tuple(read)

    def close(self) -> None:
        self._hold.release()
