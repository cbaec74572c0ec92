"""Dead letters from outside a run: read them, take them away, or send their tuples again."""

from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from elastream.engine.clock import SteadyClock
from elastream.engine.driver.run_base import RunBase
from elastream.engine.worker.dead_letters import DEAD_LETTERS, tuple_of
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import Entry
from elastream.lanes.ledger import LedgerReader
from elastream.lanes.readers import Backlog, OutputReader, acknowledge, known_readers, read_backlog
from elastream.lanes.runs import Runs, packed
from elastream.lanes.segment_files import SegmentWriter
from elastream.lanes.segments import LaneId, WrittenFor, encode_schema, schema_id
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store
from elastream.routing.key_groups import groups_of
from elastream.state.columns import KeyedColumns

READER = "letters"
"""The name under which letters that were taken away are acknowledged."""


def read_letters(store: Store, *, remove: bool = False) -> pa.Table:
    """All letters that wait, the oldest first. With `remove` the driver takes them away, the next one if none runs now."""
    backlog = _not_taken(store)
    table = read_backlog(store, backlog)
    if remove and backlog.slices:
        acknowledge(store, DEAD_LETTERS, READER, backlog.stop)
    return table


def expired_letters(store: Store) -> int:
    """How many letters were removed unread, because they were too many or too old."""
    counts = LedgerReader(store).refresh().totals.get(DEAD_LETTERS)
    return counts.expired if counts is not None else 0


def drain_letters(store: Store, path: str) -> int:
    """Write all letters to a Parquet file, then have them taken away; says how many. What comes meanwhile stays."""
    backlog = _not_taken(store)
    table = read_backlog(store, backlog)
    pq.write_table(table, path)
    if backlog.slices:
        acknowledge(store, DEAD_LETTERS, READER, backlog.stop)
    return int(table.num_rows)


def _not_taken(store: Store) -> Backlog:
    """Letters that wait and were not taken away: those go when a driver has the base."""
    taken = (reader.position for reader in known_readers(store, DEAD_LETTERS) if reader.name == READER)
    return OutputReader(store).backlog(DEAD_LETTERS).since(next(taken, 0))


class Retried(NamedTuple):
    """How many tuples were put back, and how many letters stay."""

    tuples: int
    stay: int
    timers: int
    """Letters of timers, among those that stay."""


def retry_letters(store: Store) -> Retried:
    """Put the tuples of letters back into the lanes they came from.

    For a base that no driver has. A letter stays when its operator has no lanes any more, or takes other columns now. So does
    that of a timer: it has no tuple, only a key.
    """
    base = RunBase(store, SteadyClock())
    with base.opening():
        pass
    try:
        return _retry(base, base.state)
    finally:
        base.close()


def _retry(base: RunBase, state: LedgerState) -> Retried:
    table = read_letters(base.store)
    again: dict[WrittenFor, list[pa.RecordBatch]] = {}
    groups: dict[WrittenFor, Runs] = {}
    counts: dict[str, OperatorCounts] = {}
    stay: list[int] = []
    timers = 0
    for number, letter in enumerate(table.to_pylist()):
        lane, data = LaneId(letter["operator"], letter["replica"]), letter.get("tuple")
        batch = tuple_of(data) if data is not None else None
        if batch is not None and _is_timer(state, letter, batch):
            timers += 1
            batch = None
        if batch is not None:
            lane, runs = _owner(state, lane, batch)
        if batch is None or lane not in state.lanes or schema_id(batch.schema) not in _schemas_of(state, lane.operator):
            stay.append(number)
            continue
        again.setdefault(lane, []).append(batch)
        groups[lane] = groups.get(lane, b"") + runs
        # It was dropped when it failed, so it enters anew.
        counts.setdefault(lane.operator, OperatorCounts()).entered += 1
    if again:
        schemas = {lane.operator: schema_id(batches[0].schema) for lane, batches in again.items()}
        if stay:
            again[LaneId(DEAD_LETTERS, 0)] = table.take(stay).to_batches()
            schemas[DEAD_LETTERS] = schema_id(table.schema)
        writer = SegmentWriter(base.store, f"{state.entry + 1:012d}-again", appends=False)
        written = writer.write(again, schemas, frozenset(), groups)
        entry = Entry(
            state.entry + 1,
            state.at_s,
            [(DEAD_LETTERS, 0, len(state.queue(LaneId(DEAD_LETTERS, 0))))],
            written.appended,
            counts,
            schemas={schema_id(table.schema): encode_schema(table.schema)},
        )
        state.apply(entry)
        base.write(entry)
    return Retried(table.num_rows - len(stay), len(stay), timers)


def _is_timer(state: LedgerState, letter: dict[str, Any], batch: pa.RecordBatch) -> bool:
    """True for the letter of a timer. Earlier versions did not say so, but such a letter has the columns of a key only."""
    if letter.get("timer") is not None:
        return bool(letter["timer"])
    columns = state.states.get(letter["operator"])
    return columns is not None and KeyedColumns.decode(columns).key.names == batch.schema.names[:-1]


def _owner(state: LedgerState, lane: LaneId, batch: pa.RecordBatch) -> tuple[LaneId, Runs]:
    """The lane that remembers the key of a tuple now, where its operator remembers keys; else the lane it came from."""
    columns = state.states.get(lane.operator)
    key = KeyedColumns.decode(columns).key.names if columns is not None else []
    if not key or not set(key) <= set(batch.schema.names):
        return lane, b""
    group = int(groups_of(batch, tuple(key))[0])
    return LaneId(lane.operator, state.owners[lane.operator][group]), packed([(group, 1)])


def _schemas_of(state: LedgerState, operator: str) -> set[str]:
    """Of what waits for an operator; anything that the ledger knows, when nothing does."""
    waiting: set[str] = {piece.schema for queue in state.lanes_of(operator).values() for piece in queue.slices}
    return waiting or set(state.schemas)
