"""What tests of lanes share: slices, rows, batches of numbers, a byte that turns, and a small driver."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import settings

from elastream.lanes import Appended, Entry, LaneId, Ledger, LedgerState, OperatorCounts, SchemaId, Slice, Store
from elastream.lanes.cleanup import SegmentCleanup
from elastream.lanes.segment_files import Batches, SegmentWriter, Written
from elastream.lanes.segments import encode_schema, schema_id

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=50)

HOST = "h0000000000a"

A, B = LaneId("a", 0), LaneId("b", 0)
KEPT = frozenset({"b"})
"""Operators whose rows are kept, in files apart."""

Row = tuple[str, int, int]
"""A tuple's identity: segment, offset of its batch, place in it."""


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def slice_of(segment: str, offset: int, rows: int, first: int = 0) -> Slice:
    return Slice(segment, offset, 64, 0, SchemaId("s"), first, rows)


def rows_of(pieces: "list[Slice] | Iterator[Slice]") -> list[Row]:
    return [(p.segment, p.offset, at) for p in pieces for at in range(p.first, p.first + p.rows)]


def told(state: LedgerState) -> Any:
    """Everything that a state says, as it would be stored, so that tuples and lists are the same; and what is counted."""
    lanes = {lane: queue for lane, queue in state.lanes.items() if queue.appended}
    return (
        msgspec.json.decode(msgspec.json.encode(msgspec.structs.replace(state.snapshot(), lanes=[]))),
        {lane: (queue.consumed, list(queue.slices)) for lane, queue in lanes.items()},
        {lane.operator: state.queued(lane.operator) for lane in lanes},
        state.segments(),
    )


NUMBERED = pa.schema([("id", pa.int64()), ("word", pa.string())])


def numbered(first: int, rows: int) -> pa.RecordBatch:
    ids = range(first, first + rows)
    return pa.RecordBatch.from_pydict({"id": ids, "word": [f"w{n}" for n in ids]}, schema=NUMBERED)


def write(writer: SegmentWriter, batches: Batches, kept: frozenset[str] = frozenset()) -> Written:
    """Write batches, each lane's with the columns that its first has."""
    schemas = {lane.operator: schema_id(pieces[0].schema) for lane, pieces in batches.items() if pieces}
    return writer.write(batches, schemas, kept)


def write_one(writer: SegmentWriter, batch: pa.RecordBatch, lane: LaneId = A) -> Slice:
    """Write one batch to one lane, as a work of which the receipt was sent."""
    written = write(writer, {lane: [batch]}, KEPT)
    writer.release(written)
    ((_, _, piece),) = written.appended
    return piece


def segment_bytes(store: Store) -> dict[str, int]:
    """The bytes of each segment file of a store."""
    return store.sizes("segments")


def flip_byte(path: Path, at: int) -> bytes:
    """Turn one byte of a file; gives what the file was."""
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    return whole


def entry_of(number: int, appended: int = 2, consumed: int = 0, **more: Any) -> Entry:
    """An entry with a little of everything; its slices are of segments that were never written."""
    pieces = [Appended("a", (number + n) % 2, slice_of(f"{number:012d}-x.arrow", 64 * n, 3)) for n in range(appended)]
    return Entry(
        number,
        1000.0 + number,
        [("a", number % 2, consumed)] if consumed else [],
        pieces,
        {"a": OperatorCounts(received=3 * appended, processed=consumed, busy_s=0.25)},
        {"read": {"next": number * 10, "origin_s": 5.5}},
        sizes={"a": 1 + number % 3},
        schemas={SchemaId(f"s{number % 3}"): "text"},
        **more,
    )


class Committing:
    """A driver that takes over a base and commits entries: apply, write, tidy."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ledger = Ledger(store)
        self.state = self.ledger.load()
        self.ledger.begin(self.state)

    def __del__(self) -> None:
        # Tests let drivers die; the log's file must not outlive them.
        self.ledger.close()

    def commit(self, entry: Entry) -> list[str]:
        freed = self.state.apply(entry).freed
        self.ledger.commit(entry)
        self.ledger.tidy(self.state)
        return freed

    def run(self, entries: int) -> "Committing":
        for number in range(self.state.entry + 1, self.state.entry + 1 + entries):
            waits = len(self.state.queue(LaneId("a", number % 2)))
            self.commit(entry_of(number, consumed=min(5, waits)))
        return self


class Scoring(Committing):
    """A driver with real tuples: `read` feeds two lanes of `score`, what `score` has done waits in `table`."""

    def __init__(self, store: Store, host: str = HOST, clock: Callable[[], float] | None = None) -> None:
        super().__init__(store)
        clock = clock or Clock()
        self.cleanup = SegmentCleanup(store, clock)
        self.cleanup.host_came(host)
        self.writer = SegmentWriter(store, host, appends=store.is_local, clock=clock)

    def tick(self, entering: int, scored: int, **more: Any) -> None:
        number = self.state.entry + 1
        batches = {LaneId("score", n): [numbered(1000 * number + 100 * n, entering)] for n in range(2)}
        batches[LaneId("table", 0)] = [numbered(0, 2 * scored)]
        written = write(self.writer, batches, frozenset({"table"}))
        entry = Entry(
            number,
            float(number),
            [("score", n, scored) for n in range(2) if scored],
            written.appended,
            {"read": OperatorCounts(entered=2 * entering), "score": OperatorCounts(finished=2 * scored, busy_s=0.5)},
            schemas={schema_id(NUMBERED): encode_schema(NUMBERED)},
            outputs=["table"],
            **more,
        )
        freed = self.commit(entry)
        self.writer.release(written)
        self.cleanup.after_commit(self.state, freed, self.writer.ended(), number + 1)
