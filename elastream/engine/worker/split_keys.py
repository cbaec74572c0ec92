"""Keys that are split over lanes: parts of their states are made where some of their tuples are, and merged where they live.

A part is what the operator's function makes of the initial state with the tuples of one work. It is not remembered where it was
made, so that only the lane in which a key lives ever changes what is known of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from elastream.engine.worker.dead_letters import Failure
from elastream.engine.worker.functions import Made, NotDeclared, columns_of, given_rows
from elastream.engine.worker.keyed import (
    Changed,
    Key,
    KeyRun,
    by_batch,
    call_on_batch,
    halved,
    places_of,
    serve_keys,
    state_columns,
    without_bad_keys,
)
from elastream.routing.hashing import hash_columns
from elastream.state.host_state import StateChanges
from elastream.topology import DUE, KeyedState, Kind, Operator, stored
from elastream.topology.groupings import KEY_GROUPS
from elastream.user_code import describe

PART = "_part"
"""The column of a part: a record, as it is stored."""

HEAVY = 0.05
"""A key with so large a part of a work's tuples is told to the driver, which may split it."""


def parts_schema(state: KeyedState, entering: pa.Schema) -> pa.Schema:
    """The columns of parts: the key, the record, and when the oldest of their tuples was due."""
    keys = [entering.field(name) for name in state.key]
    return stored(pa.schema([*keys, pa.field(PART, pa.binary())]))


@dataclass
class Served:
    """Tuples of a lane of an operator whose keys may be split."""

    made: Made
    parts: pa.RecordBatch | None = None
    """For the lanes in which their keys live."""
    hot: list[tuple[int, int]] = field(default_factory=list)
    """Heavy keys: their hash, and how many tuples."""


def serve_split(operator: Operator, batch: pa.RecordBatch, state: StateChanges, mine: frozenset[int]) -> Served:
    """Run the function; `mine` are the key groups of the lane. Tuples of other groups are of keys that are split."""
    assert operator.keyed is not None
    if PART in batch.schema.names:
        return Served(_merge_parts(operator, batch, state))
    batch, failures = without_bad_keys(operator, batch)
    if not batch.num_rows:
        return Served(Made([], failures))
    hashes = hash_columns(batch, operator.keyed.key)
    hot = _heavy(hashes)
    foreign = ~np.isin((hashes % np.uint64(KEY_GROUPS)).astype(np.int64), list(mine))
    if not foreign.any():
        made, parts = serve_keys(operator, batch, state), None
    else:
        here = batch.filter(pa.array(~foreign))
        parts, failed = _make_parts(operator, batch.filter(pa.array(foreign)), state)
        failures += failed
        # Last, for it changes the state, and the rows are tried again in parts when something raises.
        made = serve_keys(operator, here, state) if here.num_rows else Made([])
    made.failures = failures + made.failures
    return Served(made, parts, hot)


def _heavy(hashes: Any) -> list[tuple[int, int]]:
    keys, counts = np.unique(hashes, return_counts=True)
    heavy = counts >= max(2.0, HEAVY * len(hashes))
    return [(int(key), int(rows)) for key, rows in zip(keys[heavy], counts[heavy], strict=True)]


def _make_parts(
    operator: Operator, batch: pa.RecordBatch, state: StateChanges
) -> tuple[pa.RecordBatch | None, list[Failure]]:
    """A record per key, from the initial state. What the function yields is not the whole, and is not passed on."""
    if operator.kind is Kind.KEYED:
        run = KeyRun(operator, batch, state, blank=True)
        out, _ = run.together()
        try:
            columns_of(operator, out)
        except NotDeclared:
            run = KeyRun(operator, batch, state, blank=True)
            run.one_by_one(run.places)
        first = {place: rows[0] for place, rows in run.places.items()}
        return _parts_of(operator, batch, first, run.changed), run.failures
    pieces: list[pa.RecordBatch] = []

    def serve(some: pa.RecordBatch) -> pa.RecordBatch:
        """Where the function raised on the whole, a key has a part of each piece on which it did not."""
        assert operator.keyed is not None
        made, changed = call_on_batch(operator, some, state, blank=True)
        first: dict[Key, int] = {}
        for row, place in enumerate(places_of(some, operator.keyed.key, state.codec.key_bytes)):
            first.setdefault(place, row)
        parts = _parts_of(operator, some, first, changed)
        if parts is not None:
            pieces.append(parts)
        return made

    failures = halved(batch, serve).failures
    return (pa.Table.from_batches(pieces).combine_chunks().to_batches()[0] if pieces else None), failures


def _parts_of(
    operator: Operator, batch: pa.RecordBatch, first: dict[Key, int], changed: Changed
) -> pa.RecordBatch | None:
    """Records that were made of a batch. Rows of a lane are in the order they came: the first of a key is about the oldest."""
    assert operator.keyed is not None
    made = [(first[place], record) for place, record in changed.items() if record is not None]
    if not made:
        return None
    rows = pa.array([row for row, _ in made])
    keys = [batch.column(name).take(rows) for name in operator.keyed.key]
    columns = [*keys, pa.array([record for _, record in made], pa.binary()), batch.column(DUE).take(rows)]
    entering = pa.schema([batch.schema.field(name) for name in operator.keyed.key])
    return pa.RecordBatch.from_arrays(columns, schema=parts_schema(operator.keyed, entering))


def _merge_parts(operator: Operator, batch: pa.RecordBatch, state: StateChanges) -> Made:
    """Take parts into the states of their keys; what `merge` yields leaves the operator."""
    assert operator.keyed is not None and operator.keyed.merge is not None
    if operator.kind is Kind.KEYED:
        return _merge_by_key(operator, operator.keyed.merge, batch, state)
    keys = [batch.column(name) for name in operator.keyed.key]
    records = state_columns(batch.column(PART).to_pylist(), state)
    names = [*operator.keyed.key, *state.codec.columns, DUE]
    parts = pa.RecordBatch.from_arrays([*keys, *records, batch.column(DUE)], names=names)
    return by_batch(operator, parts, state, operator.keyed.merge)


def _merge_by_key(operator: Operator, merge: Callable[..., Any], batch: pa.RecordBatch, state: StateChanges) -> Made:
    run = KeyRun(operator, batch.drop_columns([PART]), state)
    codec, now_s = state.codec, state.now_s
    parts = batch.column(PART).to_pylist()
    out: list[Any] = []
    parents: list[int] = []
    failures: list[Failure] = []
    changed: Changed = {}
    for place, rows in run.places.items():
        for row in rows:
            before = changed[place] if place in changed else run.known[place]
            record = codec.new() if before is None else codec.record_of(before, now_s)
            try:
                made = list(merge(run.keys[place], codec.record_of(parts[row], now_s), record) or ())
                columns_of(operator, made)
                after = codec.bytes_of(record, now_s)
            except BaseException as error:
                wrong = isinstance(error, NotDeclared)
                text = str(error) if wrong else describe(error)
                failures.append(Failure.of(batch, row, text, undeclared=wrong))
                continue
            if after != before:
                changed[place] = after
            out += made
            parents += [row] * len(made)
    batches = [given_rows(operator, columns_of(operator, out), batch, parents)] if out else []
    state.update(changed)
    return Made(batches, failures)
