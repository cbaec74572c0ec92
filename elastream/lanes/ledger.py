"""The ledger: one file an entry, written atomically. That write is the only commit point.

An entry holds what changed, so a commit costs what the tick did, not what waits. Now and then the whole book is written
beside the entries, after as many bytes of entries as it takes itself; older entries are then no longer needed. The
snapshot before the last is kept, so that one damaged snapshot does not stop a restart.
"""

import re
from collections.abc import Iterator

from elastream.errors import Damaged
from elastream.lanes.book import Book, Entry
from elastream.lanes.sealed import seal, unseal
from elastream.lanes.store import Store

FOLDER = "ledger"
ENTRIES_A_SNAPSHOT = 64

_ENTRY = re.compile(r"entry-(\d{12})\.json")
_BOOK = re.compile(r"book-(\d{12})\.json")


class Ledger:
    """The entries and snapshots of one base directory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries_since = 0
        self._bytes_since = 0
        self._snapshot_bytes = 0
        self._snapshots: list[int] = []
        self._oldest = 0
        self._damaged: list[int] = []

    def load(self) -> Book:
        """The book as of the last entry. A new base gives an empty one."""
        names = sorted(self._store.sizes(FOLDER))
        entries = [int(found[1]) for name in names if (found := _ENTRY.fullmatch(name))]
        self._snapshots = [int(found[1]) for name in names if (found := _BOOK.fullmatch(name))]
        self._oldest = min(entries, default=0)
        book = self._newest_snapshot(set(entries))
        for tick in (tick for tick in entries if tick > book.tick):
            if tick != book.tick + 1:
                raise Damaged(
                    f"ledger in {self._store}: entry {book.tick + 1} is missing between {book.tick} and {tick}; "
                    f"restore {_entry_name(book.tick + 1)} and start again"
                )
            book.apply(self.read(tick))
            self._entries_since += 1
        return book

    def commit(self, entry: Entry) -> None:
        """Write one entry. When this returns it has happened; when it raises it has not."""
        data = seal("entry", entry.to_json())
        self._store.write(_entry_name(entry.tick), data)
        self._entries_since += 1
        self._bytes_since += len(data)

    def read(self, tick: int) -> Entry:
        name = _entry_name(tick)
        return Entry.from_json(unseal("entry", self._store.read(name), f"{self._store}/{name}"))

    def has(self, tick: int) -> bool:
        return self._store.exists(_entry_name(tick))

    def newest(self) -> int:
        """The tick of the last entry; -1 when there is none."""
        return max(
            (int(found[1]) for name in self._store.sizes(FOLDER) if (found := _ENTRY.fullmatch(name))), default=-1
        )

    def entries(self) -> Iterator[Entry]:
        """All entries still kept, in order."""
        for name in sorted(self._store.sizes(FOLDER)):
            if found := _ENTRY.fullmatch(name):
                yield self.read(int(found[1]))

    def tidy(self, book: Book) -> None:
        """Write a snapshot when it is due, and remove what the one before it made useless."""
        if self._entries_since < ENTRIES_A_SNAPSHOT or self._bytes_since < self._snapshot_bytes:
            return
        data = seal("book", book.to_json())
        self._store.write(_book_name(book.tick), data)
        self._entries_since = self._bytes_since = 0
        self._snapshot_bytes = len(data)
        self._snapshots.append(book.tick)
        keep = self._snapshots[-2:]
        if len(keep) == 2:
            old = [_entry_name(tick) for tick in range(self._oldest, keep[0] + 1)]
            old += [_book_name(tick) for tick in self._snapshots[:-2] + self._damaged]
            self._damaged = []
            self._store.delete(old)
            self._oldest, self._snapshots = keep[0] + 1, keep

    def _newest_snapshot(self, entries: set[int]) -> Book:
        """The newest book that is whole and from which every later entry is there."""
        damage: Damaged | None = None
        for tick in self._snapshots[::-1]:
            name = _book_name(tick)
            try:
                return Book.from_json(unseal("book", self._store.read(name), f"{self._store}/{name}"))
            except Damaged as error:
                self._snapshots.remove(tick)
                damage = damage or error
                self._damaged.append(tick)
        if damage and 0 not in entries:
            raise damage
        return Book()


def _entry_name(tick: int) -> str:
    return f"{FOLDER}/entry-{tick:012d}.json"


def _book_name(tick: int) -> str:
    return f"{FOLDER}/book-{tick:012d}.json"
