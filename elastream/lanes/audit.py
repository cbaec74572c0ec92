"""The audit: a base directory is read whole and every claim that the ledger makes is checked."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from elastream.errors import Damaged
from elastream.lanes.audit_states import log_problems, replay_problems, snapshot_problems
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import Entry
from elastream.lanes.ledger import Ledger, LedgerReader
from elastream.lanes.segment_files import SegmentReader
from elastream.lanes.segments import Slice, decode_schema
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store

UNSERVED = "dead-letters"


@dataclass(frozen=True)
class Audit:
    """What was found. `problems` is empty when everything holds."""

    tick: int
    entered: int
    finished: int
    dropped: int
    """Too late, found a full lane, discarded, or dead letters."""
    queued: int
    duplicates: int
    kept: int
    """Tuples in outputs and dead letters, which count as finished or dropped and wait to be read."""
    problems: tuple[str, ...] = ()
    lanes: dict[str, int] = field(default_factory=dict)
    """Tuples that wait, per operator."""
    expired: int = 0
    """Dead letters that were removed unread, by the bounds on them."""
    read: int = 0
    """Of those that entered, the tuples that sources read; operators created the others."""
    dead_letters: int = 0
    """Of the dropped, those on which an operator failed."""

    @property
    def created(self) -> int:
        """Tuples that operators made of others, beyond one for one; and dead letters that were sent again."""
        return self.entered - self.read

    def accounts(self) -> str:
        """What came in, and what became of it."""
        created = f" + created {self.created:,}" if self.created else ""
        return (
            f"read {self.read:,}{created} = finished {self.finished:,} + dropped {self.dropped - self.dead_letters:,} + "
            f"dead letters {self.dead_letters:,} + queued {self.queued:,}"
        )

    def __str__(self) -> str:
        problems = f"; problems: {'; '.join(self.problems)}" if self.problems else ""
        return f"{self.accounts()}; duplicates {self.duplicates:,}{problems}"


def audit(store: Store) -> Audit:
    """read + created = finished + dropped + dead letters + queued; no slice twice; every tuple that waits, and all that is remembered, can be read.

    What is remembered is what its changes say, by the checksums of the hosts that made them.
    """
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
    problems += snapshot_problems(entries, state)
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
        sum(counts.processed + counts.failed for name, counts in state.totals.items() if name in state.sources),
        totals.failed,
    )


def _named_twice(entries: list[Entry], state: LedgerState) -> int:
    """Slices with rows that another append, or another place in a lane or in a log of states, claims too."""
    appended = _overlapping(a.slice for entry in entries for a in entry.appended)
    waiting = _overlapping(s for queue in state.lanes.values() for s in queue.slices)
    return len(appended | waiting | _overlapping(s for log in state.logs.values() for s in log.slices()))


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
    """Per lane and per keyed operator, the segments of which something is needed and cannot be read, and states that are not right."""
    reading = _Reading(store, state)
    try:
        problems = [
            problem
            for lane, queue in state.lanes.items()
            for problem in reading.problems(f"{lane.operator} lane {lane.lane}", queue.slices)
        ]
        for operator, log in state.logs.items():
            problems += reading.problems(f"state of {operator}", log.slices())
            problems += log_problems(operator, log)
            problems += replay_problems(operator, log, reading.read)
    finally:
        reading.close()
    return problems


class _Reading:
    """Reads every slice of which the ledger says that it is needed."""

    def __init__(self, store: Store, state: LedgerState) -> None:
        self._schemas = {key: decode_schema(text) for key, text in state.schemas.items()}
        self._reader, self._newest = SegmentReader(store), LedgerReader(store)

    def problems(self, where: str, slices: Iterable[Slice]) -> list[str]:
        """Of each segment that has some, the first."""
        found: dict[str, str] = {}
        for piece in slices:
            if piece.segment in found:
                continue
            problem = self._problem(piece)
            # A driver that runs may have served the tuples since: then what is gone was not needed any more.
            if problem is not None and self._newest.refresh().names(piece.segment):
                found[piece.segment] = f"{where}: {problem}"
        return list(found.values())

    def read(self, piece: Slice) -> pa.RecordBatch:
        """The rows of a slice. Raises `Damaged`."""
        if piece.schema not in self._schemas:
            raise Damaged(f"{piece.segment} has schema {piece.schema}, which the ledger does not tell")
        return self._reader.read(piece, self._schemas[piece.schema])

    def _problem(self, piece: Slice) -> str | None:
        try:
            rows = self.read(piece).num_rows
        except Damaged as error:
            return str(error)
        return None if rows == piece.rows else f"{piece.segment} has {rows} of {piece.rows} rows"

    def close(self) -> None:
        self._reader.close()
