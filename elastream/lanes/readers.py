"""Readers of outputs from outside: what there is to read, and how far each has come."""

import re
from dataclasses import dataclass

import pyarrow as pa

from elastream.errors import SettingError
from elastream.lanes.ledger import LedgerReader
from elastream.lanes.sealed import seal, unexpected, unseal
from elastream.lanes.segment_files import SegmentReader
from elastream.lanes.segments import LaneId, SchemaId, Slice, decode_schema
from elastream.lanes.store import Store

FOLDER = "readers"


@dataclass(frozen=True)
class Backlog:
    """The slices of an output from tuple number `first` on, and the schemas that they name."""

    first: int
    slices: tuple[Slice, ...]
    schemas: dict[SchemaId, str]

    @property
    def stop(self) -> int:
        return self.first + sum(piece.rows for piece in self.slices)

    def since(self, position: int) -> "Backlog":
        """The part of it from this tuple number on."""
        skip = left = min(max(0, position - self.first), self.stop - self.first)
        slices: list[Slice] = []
        for piece in self.slices:
            cut = min(left, piece.rows)
            left -= cut
            if cut < piece.rows:
                slices.append(piece._replace(first=piece.first + cut, rows=piece.rows - cut))
        return Backlog(self.first + skip, tuple(slices), self.schemas)


class OutputReader:
    """Reads a ledger while a driver writes it. Only committed tuples are there."""

    def __init__(self, store: Store) -> None:
        self._ledger = LedgerReader(store)

    def backlog(self, output: str) -> Backlog:
        """The tuples that wait in an output now."""
        state = self._ledger.refresh()
        queue = state.queue(LaneId(output, 0))
        return Backlog(queue.consumed, tuple(queue.slices), dict(state.schemas))


def read_output(store: Store, output: str) -> pa.Table:
    """All tuples that wait in an output, in the order in which they were committed."""
    return read_backlog(store, OutputReader(store).backlog(output))


def read_backlog(store: Store, found: Backlog) -> pa.Table:
    reader = SegmentReader(store)
    try:
        batches = [reader.read(piece, decode_schema(found.schemas[piece.schema])) for piece in found.slices]
    finally:
        reader.close()
    if not batches:
        return pa.table({})
    # Letters of an earlier version may lack a column.
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="default")


@dataclass(frozen=True)
class Reader:
    """Somebody who reads an output, and how far it has come."""

    output: str
    name: str
    position: int


def known_readers(store: Store, output: str) -> list[Reader]:
    """Those that have acknowledged something. Others may put files there too: editors, file managers."""
    names = [name for name in store.names(f"{FOLDER}/{output}") if re.fullmatch(r"\w[\w.-]*\.json", name, re.ASCII)]
    return [Reader(output, name.removesuffix(".json"), _position(store, f"{FOLDER}/{output}/{name}")) for name in names]


def forget_reader(store: Store, output: str, name: str) -> None:
    """What this reader has not read is kept for it no longer."""
    check_reader(name)
    store.delete([f"{FOLDER}/{output}/{name}.json"])


def _position(store: Store, name: str) -> int:
    position = unseal("reader", store.read(name), f"{store}/{name}").get("position")
    if not isinstance(position, int) or position < 0:
        raise unexpected("reader", f"{store}/{name}")
    return position


def check_reader(name: str) -> None:
    """The name of a reader is the name of a file."""
    if not re.fullmatch(r"\w[\w.-]{0,63}", name, re.ASCII):
        raise SettingError(
            f"reader {name!r}: a name has 1 to 64 letters, digits, '_', '-' or '.', and begins with no '.'; rename it"
        )


def acknowledge(store: Store, output: str, reader: str, position: int) -> None:
    """This reader needs nothing before `position` any more."""
    store.write(f"{FOLDER}/{output}/{reader}.json", seal("reader", {"position": position}))


def register_reader(store: Store, output: str, reader: str, position: int) -> None:
    """A reader begins here, unless it is known: from now on it is waited for."""
    if not store.exists(f"{FOLDER}/{output}/{reader}.json"):
        acknowledge(store, output, reader, position)


def acknowledged(store: Store, output: str) -> int | None:
    """How far the slowest reader has come; None when there is no reader."""
    return min((reader.position for reader in known_readers(store, output)), default=None)
