"""The audit: a base directory is read whole and every claim that the ledger makes is checked."""

from collections import Counter
from dataclasses import dataclass, field

from elastream.errors import Damaged
from elastream.lanes.book import Book
from elastream.lanes.ledger import Ledger
from elastream.lanes.segments import decode_schema, read_slice
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


def audit(store: Store) -> Audit:
    """entered = finished + dropped + queued; no slice twice; every tuple that waits can be read."""
    ledger = Ledger(store)
    try:
        book = ledger.load()
        duplicates = _named_twice(ledger, book)
    except Damaged as error:
        return Audit(-1, 0, 0, 0, 0, 0, 0, (str(error),))
    outputs = set(book.plan.get("outputs", ())) | {UNSERVED}
    totals = Counter[str]()
    for counts in book.totals.values():
        totals.update({name: int(value) for name, value in counts.items() if not name.endswith("_s")})
    dropped = totals["failed"] + totals["late"] + totals["overflowed"]
    waiting: Counter[str] = Counter()
    for lane, queue in book.lanes.items():
        waiting[lane.operator] += len(queue)
    queued = sum(rows for operator, rows in waiting.items() if operator not in outputs)
    problems = _unreadable(store, book)
    if duplicates:
        problems.append(f"{duplicates} slices are named twice")
    if totals["entered"] != totals["finished"] + dropped + queued:
        problems.append(
            f"entered {totals['entered']} is not finished {totals['finished']} + dropped {dropped} + queued {queued}"
        )
    return Audit(
        book.tick,
        totals["entered"],
        totals["finished"],
        dropped,
        queued,
        duplicates,
        sum(waiting.values()) - queued,
        tuple(problems),
        dict(waiting),
    )


def _named_twice(ledger: Ledger, book: Book) -> int:
    """Rows of a batch that two appends, or two lanes, claim."""
    appended = Counter((a.slice.segment, a.slice.offset) for entry in ledger.entries() for a in entry.appended)
    waiting = Counter((s.segment, s.offset) for queue in book.lanes.values() for s in queue.slices)
    return sum(n - 1 for n in (appended | waiting).values())


def _unreadable(store: Store, book: Book) -> list[str]:
    schemas = {key: decode_schema(text) for key, text in book.schemas.items()}
    problems = []
    for lane, queue in book.lanes.items():
        for piece in queue.slices:
            try:
                rows = read_slice(store, piece, schemas[piece.schema]).num_rows
            except Damaged as error:
                problems.append(f"{lane.operator} lane {lane.lane}: {error}")
                continue
            if rows != piece.rows:
                problems.append(f"{lane.operator} lane {lane.lane}: {piece.segment} has {rows} of {piece.rows} rows")
    return problems
