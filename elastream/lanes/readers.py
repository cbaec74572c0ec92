"""Readers of outputs from outside: what there is to read, and how far each has come."""

from contextlib import suppress
from dataclasses import dataclass

from elastream.errors import Damaged
from elastream.lanes.book import Book
from elastream.lanes.ledger import Ledger
from elastream.lanes.sealed import seal, unseal
from elastream.lanes.segments import LaneId, SchemaId, Slice
from elastream.lanes.store import Store

FOLDER = "readers"


@dataclass(frozen=True)
class Waiting:
    """The slices of an output from tuple number `first` on, and the schemas that they name."""

    first: int
    slices: tuple[Slice, ...]
    schemas: dict[SchemaId, str]

    @property
    def stop(self) -> int:
        return self.first + sum(piece.rows for piece in self.slices)


class Follower:
    """Reads a ledger while a driver writes it: the whole once, then the new entries only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ledger = Ledger(store)
        self._book = Book()

    def waiting(self, output: str) -> Waiting:
        """What the ledger says now. Only committed tuples are there."""
        self._catch_up()
        queue = self._book.queue(LaneId(output, 0))
        return Waiting(queue.consumed, tuple(queue.slices), dict(self._book.schemas))

    def _catch_up(self) -> None:
        if self._book.tick < 0:
            self._book = self._load()
        try:
            while self._ledger.has(self._book.tick + 1):
                self._book.apply(self._ledger.read(self._book.tick + 1))
        except FileNotFoundError:
            self._book = self._load()
        # A reader that fell far behind finds the next entry removed, but a later one there.
        if self._ledger.newest() > self._book.tick:
            self._book = self._load()

    def _load(self) -> Book:
        """The driver removes old entries while we read them; then there is a newer snapshot to begin from."""
        for _ in range(4):
            with suppress(FileNotFoundError, Damaged):
                return Ledger(self._store).load()
        return Ledger(self._store).load()


def acknowledge(store: Store, output: str, reader: str, position: int) -> None:
    """This reader needs nothing before `position` any more."""
    store.write(f"{FOLDER}/{output}/{reader}.json", seal("reader", {"position": position}))


def acknowledged(store: Store, output: str) -> int | None:
    """How far the slowest reader has come; None when there is no reader."""
    names = [f"{FOLDER}/{output}/{name}" for name in store.sizes(f"{FOLDER}/{output}")]
    positions = [int(unseal("reader", store.read(name), f"{store}/{name}")["position"]) for name in names]
    return min(positions, default=None)
