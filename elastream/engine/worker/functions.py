"""Run one operator's function over one batch: the batch enters with due times, what it made leaves with due times.

A tuple on which the function raises, or of which it makes what was not declared, is set aside with its error. A function
that gives nothing but what was not declared raises `OperatorFailed`: that is no tuple's fault.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from elastream.engine.worker.dead_letters import Failure
from elastream.errors import OperatorFailed
from elastream.topology import DUE, Kind, Operator, stored
from elastream.user_code import describe, short

Row = dict[str, Any]

_INTEGERS: dict[pa.DataType, Any] = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
}


@dataclass
class Made:
    """What came out of a batch, as one batch or, when it is too much for one, as several."""

    batches: list[pa.RecordBatch]
    failures: list[Failure] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches)


class NotDeclared(Exception):
    """A function gave other columns or types than it declared."""


def apply(operator: Operator, batch: pa.RecordBatch) -> Made:
    """One call for each row or for the batch, as the operator's kind says."""
    if operator.kind in (Kind.BATCH, Kind.PANDAS):
        return _apply_to_batch(operator, batch)
    return _apply_to_rows(operator, batch)


# -- a function of a row


def _apply_to_rows(operator: Operator, batch: pa.RecordBatch) -> Made:
    function = _function(operator)
    filters, many = operator.kind is Kind.FILTER, operator.kind is Kind.FLAT_MAP
    parents: list[int] = []
    out: list[Any] = []
    failures: list[Failure] = []
    for index, row in enumerate(rows_of(batch)):
        try:
            result = function(row)
            # A generator runs only when it is read, and what is true may be asked: errors of both belong to this tuple.
            results = list(result) if many else ([None] if result else []) if filters else [result]
        except BaseException as error:
            # Whatever it raises, sys.exit too: a seat must not end because of a tuple.
            failures.append(Failure.of(batch, index, describe(error)))
            continue
        out += results
        parents += [index] * len(results)
    if filters:
        kept = batch if len(parents) == batch.num_rows else batch.take(pa.array(parents, pa.int64()))
        return Made([kept], failures)
    return _declared(operator, out, batch, parents, failures)


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """As dicts, without the due times."""
    names = [name for name in batch.schema.names if name != DUE]
    columns = [batch.column(name).to_pylist() for name in names]
    if len(names) == 1:
        name = names[0]
        return [{name: value} for value in columns[0]]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _declared(
    operator: Operator, rows: list[Any], batch: pa.RecordBatch, parents: list[int], failures: list[Failure]
) -> Made:
    """The rows as they were declared; a tuple of which one is not is set aside, with all that was made of it."""
    try:
        columns = columns_of(operator, rows)
    except NotDeclared as error:
        first = error
    else:
        return Made([given_rows(operator, columns, batch, parents)], failures)
    bad: dict[int, str] = {}
    for row, parent in zip(rows, parents, strict=True):
        try:
            columns_of(operator, [row])
        except NotDeclared as error:
            bad.setdefault(parent, str(error))
    if not bad:
        # Each row fits and all together do not: more text than a column can hold.
        half = len(rows) // 2
        parts = [_declared(operator, rows[a:b], batch, parents[a:b], []) for a, b in ((0, half), (half, len(rows)))]
        return Made([made for part in parts for made in part.batches], failures)
    good = [place for place, parent in enumerate(parents) if parent not in bad]
    if not good and len(bad) > 1:
        raise OperatorFailed(str(first))
    failures = [
        *failures,
        *(Failure.of(batch, parent, error, undeclared=True) for parent, error in sorted(bad.items())),
    ]
    return _declared(operator, [rows[place] for place in good], batch, [parents[place] for place in good], failures)


def given_rows(
    operator: Operator, columns: list[pa.Array], batch: pa.RecordBatch, parents: list[int]
) -> pa.RecordBatch:
    """What leaves, each row due when the one was that it was made of."""
    same = len(parents) == batch.num_rows and parents == list(range(batch.num_rows))
    due = batch.column(DUE)
    times = due if same else due.take(pa.array(parents, pa.int64()))
    return pa.RecordBatch.from_arrays([*columns, times], schema=stored(operator.schema))


def columns_of(operator: Operator, rows: list[Any]) -> list[pa.Array]:
    names = operator.schema.names
    wanted = set(names)
    for row in rows:
        if not isinstance(row, dict) or row.keys() != wanted:
            got = list(row) if isinstance(row, dict) else f"{type(row).__name__} {_shown(row)}"
            raise NotDeclared(
                f"operator {operator.name!r}: declared columns {names}, returned {short(got)}; "
                "return a dict with these columns, or change schema"
            )
    try:
        return [pa.array([row[name] for row in rows], operator.schema.field(name).type) for name in names]
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise NotDeclared(
            f"operator {operator.name!r}: declared {_types(operator.schema)}, returned other types: {short(error)}; "
            "convert the values, or change schema"
        ) from None


def _shown(value: object) -> str:
    try:
        return short(repr(value))
    except Exception:
        return "that cannot be shown"


# -- a function of a batch


def _apply_to_batch(operator: Operator, batch: pa.RecordBatch) -> Made:
    """The whole batch in one call; when that raises, halves, until the tuples that cannot be served stand alone."""
    made, wrong = _halved(operator, batch)
    if wrong is not None and not made.rows and len(made.failures) == batch.num_rows > 1:
        raise OperatorFailed(str(wrong))
    return made


def _halved(operator: Operator, batch: pa.RecordBatch) -> tuple[Made, NotDeclared | None]:
    """What was made, and in which way a function did not keep to its declaration on any piece, if it did not."""
    try:
        return Made([conform(operator, _call_on_batch(operator, batch), batch.column(DUE))]), None
    except BaseException as error:
        wrong = error if isinstance(error, NotDeclared) else None
        if batch.num_rows > 1:
            middle = batch.num_rows // 2
            left, left_wrong = _halved(operator, batch.slice(0, middle))
            right, right_wrong = _halved(operator, batch.slice(middle))
            return joined(left, right), left_wrong and right_wrong
        text = str(wrong) if wrong else describe(error)
        return Made([], [Failure.of(batch, 0, text, undeclared=wrong is not None)]), wrong


def joined(left: Made, right: Made) -> Made:
    """Two parts as one: also as one batch, where Arrow can hold it."""
    failures = left.failures + right.failures
    if len(left.batches) == len(right.batches) == 1:
        found = pa.Table.from_batches(left.batches + right.batches).combine_chunks().to_batches()
        return Made(found or left.batches, failures)
    return Made(left.batches + right.batches, failures)


def _call_on_batch(operator: Operator, batch: pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    function = _function(operator)
    if operator.kind is Kind.PANDAS:
        frame = function(frame_of(batch))
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
            raise NotDeclared(
                f"operator {operator.name!r}: expected a pandas DataFrame, got {type(frame).__name__}: {short(error)}"
            ) from None
    result = function(batch)
    if not isinstance(result, pa.RecordBatch | pa.Table):
        raise NotDeclared(
            f"operator {operator.name!r}: expected a pyarrow RecordBatch or Table, got {type(result).__name__}; return one"
        )
    return result


def frame_of(batch: pa.RecordBatch) -> pd.DataFrame:
    """Integers beside a null stay integers: pandas would make floats of them, which change those beyond 2**53."""
    holes = {column.type for column in batch.columns if column.null_count and column.type in _INTEGERS}
    frame: pd.DataFrame = batch.to_pandas(types_mapper=lambda kind: _INTEGERS[kind] if kind in holes else None)
    return frame


def conform(operator: Operator, result: pa.Table | pa.RecordBatch, due: pa.Array) -> pa.RecordBatch:
    """Check the columns against the declaration and give every row a due time."""
    if isinstance(result, pa.RecordBatch) and result.schema.equals(stored(operator.schema)):
        return result
    names = operator.schema.names
    returned = [name for name in result.schema.names if name != DUE]
    if set(returned) != set(names) or len(returned) != len(names):
        raise NotDeclared(
            f"operator {operator.name!r}: declared columns {names}, returned {returned}; return these columns, or change schema"
        )
    if DUE not in result.schema.names:
        same = result.num_rows == len(due)
        # Which tuple became which is not known, so none of them looks younger than it is.
        times = due if same else pa.array(np.full(result.num_rows, np.asarray(due).min() if len(due) else 0), due.type)
        result = result.append_column(pa.field(DUE, due.type), times)
    try:
        table = (result if isinstance(result, pa.Table) else pa.Table.from_batches([result])).select([*names, DUE])
        batches = table.cast(stored(operator.schema)).combine_chunks().to_batches()
    except (pa.ArrowException, ValueError) as error:
        raise NotDeclared(
            f"operator {operator.name!r}: declared {_types(operator.schema)}, returned {_types(result.schema)}: {short(error)}; "
            "convert the columns, or change schema"
        ) from None
    if len(batches) > 1:
        # Halves of it fit.
        raise ValueError("more text in one column than Arrow can hold in a batch: 2 GiB")
    return batches[0] if batches else _empty(operator)


def _function(operator: Operator) -> Callable[..., Any]:
    assert operator.function is not None, f"{operator.kind} {operator.name!r} has no function"
    return operator.function


def _empty(operator: Operator) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=stored(operator.schema))


def _types(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)
