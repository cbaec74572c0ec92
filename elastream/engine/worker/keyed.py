"""Keyed operators run on batches: rows of one key meet what is known of it, and both leave together, or neither does.

A tuple on which the function raises, or of which it makes what was not declared, leaves the state as it was and is set aside.
"""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from elastream.engine.worker.dead_letters import Failure
from elastream.engine.worker.functions import Made, NotDeclared, columns_of, conform, frame_of, given_rows, rows_of
from elastream.errors import OperatorFailed
from elastream.routing.key_groups import groups_of
from elastream.state.host_state import StateChanges
from elastream.state.records import KeyRecord
from elastream.topology import DUE, Kind, Operator
from elastream.user_code import describe, short

Key = tuple[int, bytes]
Changed = dict[Key, bytes | None]


def apply_keyed(operator: Operator, batch: pa.RecordBatch, state: StateChanges) -> Made:
    """Run the function on some tuples of many keys; `state` knows afterwards what changed."""
    batch, failures = without_bad_keys(operator, batch)
    if not batch.num_rows:
        return Made([], failures)
    made = serve_keys(operator, batch, state)
    made.failures = failures + made.failures
    return made


def serve_keys(operator: Operator, batch: pa.RecordBatch, state: StateChanges) -> Made:
    """The same for tuples whose keys are good."""
    return by_key(operator, batch, state) if operator.kind is Kind.KEYED else by_batch(operator, batch, state)


def without_bad_keys(operator: Operator, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[Failure]]:
    """Nothing can be remembered of a key that is null or not a number: such a number is not even equal to itself."""
    assert operator.keyed is not None
    good: Any = None
    failures: list[Failure] = []
    for name in operator.keyed.key:
        column = batch.column(name)
        checks = [("null", pc.is_null(column))] if column.null_count else []
        if pa.types.is_floating(column.type):
            checks.append(("not a number", pc.fill_null(pc.is_nan(column), False)))
        for what, bad in checks:
            if not pc.any(bad).as_py():
                continue
            error = (
                f"operator {operator.name!r}: key {name!r} is {what}; filter such tuples out before, or give them a key"
            )
            failures += [
                Failure.of(batch, row, error)
                for row, is_bad in enumerate(bad.to_pylist())
                if is_bad and (good is None or good[row].as_py())
            ]
            good = pc.invert(bad) if good is None else pc.and_(good, pc.invert(bad))
    return (batch if good is None else batch.filter(good)), failures


# -- a function of a key


def by_key(operator: Operator, batch: pa.RecordBatch, state: StateChanges) -> Made:
    """All rows of a key in one call; when that raises, or gives what was not declared, row by row."""
    run = KeyRun(operator, batch, state)
    out, parents = run.together()
    try:
        columns = columns_of(operator, out)
    except NotDeclared:
        # Which key it was is not known: nothing of this has happened.
        run = KeyRun(operator, batch, state)
        out, parents = run.one_by_one(run.places)
        columns = columns_of(operator, out)
    made = Made([given_rows(operator, columns, batch, parents)], run.failures)
    # Last: the rows are tried again in parts when something raises.
    state.update(run.changed)
    return made


class KeyRun:
    """A function of a key on a batch: the rows of every key, and what is known of it; `blank`: as if nothing were."""

    def __init__(self, operator: Operator, batch: pa.RecordBatch, state: StateChanges, *, blank: bool = False) -> None:
        assert operator.keyed is not None and operator.function is not None
        self._operator = operator
        self._function: Callable[..., Any] = operator.function
        self._batch = batch
        self._codec, self._now_s = state.codec, state.now_s
        self.failures: list[Failure] = []
        self.changed: Changed = {}
        names = operator.keyed.key
        self._rows = rows_of(batch)
        values = [batch.column(name).to_pylist() for name in names]
        self.places: dict[Key, list[int]] = {}
        """Per key, its rows."""
        self.keys: dict[Key, Any] = {}
        groups = groups_of(batch, names).tolist()
        alone = len(names) == 1
        key_bytes = self._codec.key_bytes
        for row, key in enumerate(zip(*values, strict=True)):
            place = groups[row], key_bytes(key)
            found = self.places.get(place)
            if found is None:
                self.places[place] = [row]
                self.keys[place] = key[0] if alone else key
            else:
                found.append(row)
        known: list[bytes | None] = [None] * len(self.places) if blank else state.get_many(list(self.places))
        self.known = dict(zip(self.places, known, strict=True))

    def together(self) -> tuple[list[Any], list[int]]:
        """What was made, and for each the row it was made of."""
        out: list[Any] = []
        parents: list[int] = []
        for place, rows in self.places.items():
            try:
                made = self._call(place, rows)
            except BaseException:
                # Whatever it raises, sys.exit too: a seat must not end because of a tuple.
                again, its = self.one_by_one({place: rows})
                out += again
                parents += its
                continue
            out += made
            # Which tuple became which is not known unless there are as many, so none of them looks younger than it is.
            parents += rows if len(made) == len(rows) else [rows[0]] * len(made)
        return out, parents

    def one_by_one(self, places: dict[Key, list[int]]) -> tuple[list[Any], list[int]]:
        out: list[Any] = []
        parents: list[int] = []
        for place, rows in places.items():
            for row in rows:
                before = self.changed.get(place, _UNCHANGED)
                try:
                    made = self._call(place, [row])
                    columns_of(self._operator, made)
                except BaseException as error:
                    if before is _UNCHANGED:
                        self.changed.pop(place, None)
                    else:
                        self.changed[place] = before
                    wrong = isinstance(error, NotDeclared)
                    text = str(error) if wrong else describe(error)
                    self.failures.append(Failure.of(self._batch, row, text, undeclared=wrong))
                    continue
                out += made
                parents += [row] * len(made)
        return out, parents

    def _call(self, place: Key, rows: list[int]) -> list[Any]:
        before = self.changed[place] if place in self.changed else self.known[place]
        record: KeyRecord = self._codec.new() if before is None else self._codec.record_of(before, self._now_s)
        made = list(self._function(self.keys[place], [dict(self._rows[row]) for row in rows], record) or ())
        after = self._codec.bytes_of(record, self._now_s)
        if after != before:
            self.changed[place] = after
        return made


_UNCHANGED: Any = object()


# -- a function of a batch


def by_batch(
    operator: Operator, batch: pa.RecordBatch, state: StateChanges, function: Callable[..., Any] | None = None
) -> Made:
    """Run the function, or this one instead, on the whole batch."""

    def serve(some: pa.RecordBatch) -> pa.RecordBatch:
        made, changed = call_on_batch(operator, some, state, function)
        state.update(changed)
        return made

    return halved(batch, serve)


def halved(batch: pa.RecordBatch, serve: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Made:
    """The whole batch in one call; when that raises, halves, one after the other, until the bad tuples stand alone."""
    made, wrong = _halved(batch, serve)
    if wrong is not None and not made.rows and len(made.failures) == batch.num_rows > 1:
        raise OperatorFailed(str(wrong))
    return made


def _halved(
    batch: pa.RecordBatch, serve: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> tuple[Made, NotDeclared | None]:
    try:
        return Made([serve(batch)]), None
    except BaseException as error:
        wrong = error if isinstance(error, NotDeclared) else None
        if batch.num_rows > 1:
            middle = batch.num_rows // 2
            left, left_wrong = _halved(batch.slice(0, middle), serve)
            right, right_wrong = _halved(batch.slice(middle), serve)
            return Made(left.batches + right.batches, left.failures + right.failures), left_wrong and right_wrong
        text = str(wrong) if wrong else describe(error)
        return Made([], [Failure.of(batch, 0, text, undeclared=wrong is not None)]), wrong


def call_on_batch(
    operator: Operator,
    batch: pa.RecordBatch,
    state: StateChanges,
    function: Callable[..., Any] | None = None,
    *,
    blank: bool = False,
) -> tuple[pa.RecordBatch, Changed]:
    """What leaves, and what changed, which is not kept yet; `blank`: as if nothing were known of any key."""
    assert operator.keyed is not None and operator.function is not None
    codec, names = state.codec, list(operator.keyed.key)
    keys = pa.Table.from_batches([batch.select(names)]).group_by(names, use_threads=False).aggregate([])
    keys = keys.select(names).combine_chunks().to_batches()[0]
    places = places_of(keys, operator.keyed.key, codec.key_bytes)
    known: list[bytes | None] = [None] * len(places) if blank else state.get_many(places)
    before = pa.RecordBatch.from_arrays([*keys.columns, *state_columns(known, state)], names=[*names, *codec.columns])
    as_frame = operator.kind is Kind.KEYED_PANDAS
    call = function or operator.function
    result = call(*((frame_of(batch), frame_of(before)) if as_frame else (batch, before)))
    if not isinstance(result, tuple) or len(result) != 2:
        raise NotDeclared(
            f"operator {operator.name!r}: expected two, what leaves and the state, got {type(result).__name__}; return both"
        )
    out, after = (_as_table(operator, part) for part in result)
    made = conform(operator, out, batch.column(DUE))
    return made, _changes(operator, after, dict(zip(places, known, strict=True)), state)


def state_columns(known: list[bytes | None], state: StateChanges) -> list[pa.Array]:
    """Records as they are stored, as columns; of a key that is new, the initial state."""
    codec = state.codec
    records = [codec.new() if data is None else codec.record_of(data, state.now_s) for data in known]
    return [
        pa.array([getattr(record, name) for record in records], codec.schema.field(name).type) for name in codec.columns
    ]


def _changes(operator: Operator, after: pa.Table, known: dict[Key, bytes | None], state: StateChanges) -> Changed:
    """Of the rows that a function gave back for its keys."""
    assert operator.keyed is not None
    codec, names = state.codec, list(operator.keyed.key)
    wanted = [*names, *codec.columns]
    if sorted(after.column_names) != sorted(wanted):
        raise NotDeclared(
            f"operator {operator.name!r}: the state has columns {wanted}, returned {after.column_names}; return these columns"
        )
    schema = pa.schema([*codec.key_schema, *codec.schema])
    try:
        table = after.select(wanted).cast(schema).combine_chunks()
    except (pa.ArrowException, ValueError) as error:
        raise NotDeclared(f"operator {operator.name!r}: the state is not as declared: {short(error)}") from None
    if not table.num_rows:
        return {}
    batch = table.to_batches()[0]
    changed: Changed = {}
    values = [batch.column(name).to_pylist() for name in codec.columns]
    for place, columns in zip(
        places_of(batch, operator.keyed.key, codec.key_bytes), zip(*values, strict=True), strict=True
    ):
        if place not in known or place in changed:
            raise NotDeclared(
                f"operator {operator.name!r}: the state has a key twice, or one that was not given; return those"
            )
        if all(value is None for value in columns):
            data = None
        else:
            record = codec.new()
            for name, value in zip(codec.columns, columns, strict=True):
                setattr(record, name, value)
            data = codec.bytes_of(record, state.now_s)
        if data != known[place]:
            changed[place] = data
    return changed


def places_of(keys: pa.RecordBatch, names: tuple[str, ...], key_bytes: Callable[[Any], bytes]) -> list[Key]:
    """Per row, the key group and the key as it is stored."""
    values = [keys.column(name).to_pylist() for name in names]
    groups = groups_of(keys, names).tolist()
    return [(group, key_bytes(key)) for group, key in zip(groups, zip(*values, strict=True), strict=True)]


def _as_table(operator: Operator, part: Any) -> pa.Table:
    if isinstance(part, pd.DataFrame):
        return pa.Table.from_pandas(part, preserve_index=False)
    if isinstance(part, pa.RecordBatch):
        return pa.Table.from_batches([part])
    if isinstance(part, pa.Table):
        return part
    raise NotDeclared(
        f"operator {operator.name!r}: expected batches or DataFrames, got {type(part).__name__}; return two of them"
    )
