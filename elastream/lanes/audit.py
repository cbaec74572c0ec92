"""The audit: a base directory is read whole and every claim that the ledger makes is checked."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from elastream.errors import Damaged
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.ledger import Ledger, LedgerReader
from elastream.lanes.segment_files import SegmentReader
from elastream.lanes.segments import SchemaId, Slice, decode_schema
from elastream.lanes.state import Entry, LedgerState
from elastream.lanes.store import Store

UNSERVED = "dead-letters"


@dataclass(frozen=True)
class Audit:
    """What was found. `problems` is empty when everything holds."""

    tick: int
    entered: int
    finished: int
    dropped: int
    queued: int
    duplicates: int
    kept: int
    """Tuples in outputs and dead letters, which count as finished or dropped and wait to be read."""
    problems: tuple[str, ...] = ()
    lanes: dict[str, int] = field(default_factory=dict)
    """Tuples that wait, per operator."""
    expired: int = 0
    """Dead letters that were removed unread, by the bounds on them."""


def audit(store: Store) -> Audit:
    """entered = finished + dropped + queued; no slice twice; every tuple that waits can be read."""
    ledger = Ledger(store)
    problems: list[str] = []
    entries: list[Entry] = []
    try:
        state = ledger.load()
    except Damaged as error:
        return Audit(-1, 0, 0, 0, 0, 0, 0, (str(error),))
    try:
        entries = list(ledger.entries())
    except Damaged as error:
        # The log before the last is only needed when the last is damaged.
        problems.append(str(error))
    duplicates = _named_twice(entries, state)
    outputs = {*state.outputs, UNSERVED}
    totals = OperatorCounts()
    for counts in state.totals.values():
        totals.add(counts)
    waiting: Counter[str] = Counter()
    for lane, queue in state.lanes.items():
        waiting[lane.operator] += len(queue)
    queued = sum(rows for operator, rows in waiting.items() if operator not in outputs)
    problems += _unreadable(store, state)
    if duplicates:
        problems.append(f"{duplicates} slices are named twice")
    if totals.entered != totals.finished + totals.dropped + queued:
        problems.append(
            f"entered {totals.entered} is not finished {totals.finished} + dropped {totals.dropped} + queued {queued}"
        )
    return Audit(
        state.entry,
        totals.entered,
        totals.finished,
        totals.dropped,
        queued,
        duplicates,
        sum(waiting.values()) - queued,
        tuple(problems),
        dict(waiting),
        totals.expired,
    )


def _named_twice(entries: list[Entry], state: LedgerState) -> int:
    """Slices with rows that another append, or another place in a lane, claims too."""
    appended = _overlapping(a.slice for entry in entries for a in entry.appended)
    return len(appended | _overlapping(s for queue in state.lanes.values() for s in queue.slices))


def _overlapping(slices: Iterable[Slice]) -> set[tuple[str, int, int]]:
    """Where slices begin that have rows in common with one before them: key groups that move cut a batch into several."""
    by_batch: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for piece in slices:
        by_batch.setdefault((piece.segment, piece.offset), []).append((piece.first, piece.rows))
    found = set()
    for place, ranges in by_batch.items():
        reached = 0
        for first, rows in sorted(ranges) if len(ranges) > 1 else ():
            if first < reached:
                found.add((*place, first))
            reached = max(reached, first + rows)
    return found


def _unreadable(store: Store, state: LedgerState) -> list[str]:
    """Per lane, the segments of which something waits and cannot be read."""
    schemas = {key: decode_schema(text) for key, text in state.schemas.items()}
    problems: list[str] = []
    reader, newest = SegmentReader(store), LedgerReader(store)
    try:
        for lane, queue in state.lanes.items():
            found = set[str]()
            for piece in queue.slices:
                if piece.segment in found:
                    continue
                problem = _problem_of(reader, piece, schemas)
                # A driver that runs may have served the tuples since: then what is gone was not needed any more.
                if problem is not None and newest.refresh().names(piece.segment):
                    found.add(piece.segment)
                    problems.append(f"{lane.operator} lane {lane.lane}: {problem}")
    finally:
        reader.close()
    return problems


def _problem_of(reader: SegmentReader, piece: Slice, schemas: dict[SchemaId, pa.Schema]) -> str | None:
    if piece.schema not in schemas:
        return f"{piece.segment} has schema {piece.schema}, which the ledger does not tell"
    try:
        rows = reader.read(piece, schemas[piece.schema]).num_rows
    except Damaged as error:
        return str(error)
    return None if rows == piece.rows else f"{piece.segment} has {rows} of {piece.rows} rows"
