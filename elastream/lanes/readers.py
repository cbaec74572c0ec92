"""Readers of outputs from outside: what there is to read, and how far each has come."""

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


def waiting(store: Store, output: str) -> Waiting:
    """What the ledger says now. Only committed tuples are there."""
    book = _load_while_written(store)
    queue = book.queue(LaneId(output, 0))
    return Waiting(queue.consumed, tuple(queue.slices), dict(book.schemas))


def acknowledge(store: Store, output: str, reader: str, position: int) -> None:
    """This reader needs nothing before `position` any more."""
    store.write(f"{FOLDER}/{output}/{reader}.json", seal("reader", {"position": position}))


def acknowledged(store: Store, output: str) -> int | None:
    """How far the slowest reader has come; None when there is no reader."""
    names = [f"{FOLDER}/{output}/{name}" for name in store.sizes(f"{FOLDER}/{output}")]
    positions = [int(unseal("reader", store.read(name), f"{store}/{name}")["position"]) for name in names]
    return min(positions, default=None)


def _load_while_written(store: Store) -> Book:
    """The driver removes old entries while we read them; then there is a newer snapshot to begin from."""
    for attempt in range(5):
        try:
            return Ledger(store).load()
        except (FileNotFoundError, Damaged):
            if attempt == 4:
                raise
    raise AssertionError("not reached")
