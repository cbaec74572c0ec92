"""Run one operator's function over one batch: the batch enters with due times, what it made leaves with due times.

A tuple on which the function raises is set aside with its error. A function that breaks its own declaration (wrong
columns, wrong types) raises `OperatorFailed`: that is no tuple's fault.
"""

import json
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from elastream.errors import OperatorFailed
from elastream.topology import DUE, Kind, Operator, stored

Row = dict[str, Any]


@dataclass
class Failure:
    """One tuple set aside."""

    row: Row
    error: str
    due_us: int


@dataclass
class Made:
    """What came out of a batch."""

    batch: pa.RecordBatch
    failures: list[Failure] = field(default_factory=list)


def apply(operator: Operator, batch: pa.RecordBatch) -> Made:
    """One call for each row or for the batch, as the operator's kind says."""
    if operator.kind in (Kind.BATCH, Kind.PANDAS):
        return _apply_to_batch(operator, batch)
    return _apply_to_rows(operator, batch)


def _apply_to_rows(operator: Operator, batch: pa.RecordBatch) -> Made:
    rows: list[Row] = batch.drop_columns([DUE]).to_pylist()
    function = _function(operator)
    kept: list[int] = []
    out: list[Row] = []
    failures: list[Failure] = []
    for index, row in enumerate(rows):
        try:
            result = function(row)
            # A generator runs only when it is read: its errors belong to this tuple too.
            results = list(result) if operator.kind is Kind.FLAT_MAP else [result]
        except Exception as error:
            failures.append(Failure(row, describe(error), int(batch.column(DUE)[index].value)))
            continue
        if operator.kind is Kind.FILTER:
            if result:
                kept.append(index)
        else:
            out += results
            kept += [index] * len(results)
    if operator.kind is Kind.FILTER:
        return Made(batch if len(kept) == len(rows) else batch.take(pa.array(kept, pa.int64())), failures)
    return Made(_to_batch(operator, out, batch.column(DUE), kept), failures)


def _to_batch(operator: Operator, rows: list[Row], due: pa.Array, parents: list[int]) -> pa.RecordBatch:
    names = operator.schema.names
    wanted = set(names)
    for row in rows:
        if not isinstance(row, dict) or row.keys() != wanted:
            got = sorted(row) if isinstance(row, dict) else f"{type(row).__name__} {row!r}"
            raise OperatorFailed(
                f"operator {operator.name!r}: declared columns {names}, returned {_short(got)}; "
                "return a dict with these columns, or change schema"
            )
    try:
        columns = [pa.array([row[name] for row in rows], operator.schema.field(name).type) for name in names]
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise OperatorFailed(
            f"operator {operator.name!r}: declared {_types(operator.schema)}, returned other types: {error}; "
            "convert the values, or change schema"
        ) from None
    same = len(parents) == len(due) and parents == list(range(len(due)))
    times = due if same else due.take(pa.array(parents, pa.int64()))
    return pa.RecordBatch.from_arrays([*columns, times], schema=stored(operator.schema))


def _apply_to_batch(operator: Operator, batch: pa.RecordBatch) -> Made:
    """The whole batch in one call; when that raises, halves, until the tuples that cannot be served stand alone."""
    try:
        result = _call_on_batch(operator, batch)
    except OperatorFailed:
        raise
    except Exception as error:
        if batch.num_rows > 1:
            middle = batch.num_rows // 2
            left = _apply_to_batch(operator, batch.slice(0, middle))
            right = _apply_to_batch(operator, batch.slice(middle))
            return Made(_concat([left.batch, right.batch]), left.failures + right.failures)
        row = batch.drop_columns([DUE]).to_pylist()[0]
        failure = Failure(row, describe(error), int(batch.column(DUE)[0].value))
        return Made(_empty(operator), [failure])
    return Made(_conform(operator, result, batch.column(DUE)))


def _call_on_batch(operator: Operator, batch: pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    function = _function(operator)
    if operator.kind is Kind.PANDAS:
        frame = function(batch.to_pandas())
        try:
            return pa.RecordBatch.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, AttributeError, TypeError) as error:
            raise OperatorFailed(
                f"operator {operator.name!r}: expected a pandas DataFrame, got {type(frame).__name__}: {error}"
            ) from None
    result = function(batch)
    if not isinstance(result, pa.RecordBatch | pa.Table):
        raise OperatorFailed(
            f"operator {operator.name!r}: expected a pyarrow RecordBatch or Table, got {type(result).__name__}; return one"
        )
    return result


def _conform(operator: Operator, result: pa.Table | pa.RecordBatch, due: pa.Array) -> pa.RecordBatch:
    """Check the columns against the declaration and give every row a due time."""
    names = operator.schema.names
    returned = [name for name in result.schema.names if name != DUE]
    if set(returned) != set(names):
        raise OperatorFailed(
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
        raise OperatorFailed(
            f"operator {operator.name!r}: declared {_types(operator.schema)}, returned {_types(result.schema)}: {error}; "
            "convert the columns, or change schema"
        ) from None
    return batches[0] if batches else _empty(operator)


def describe(error: BaseException) -> str:
    """The error and the line of the user's code that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return _short(f"{type(error).__name__}: {error}{where}")


def row_to_json(row: Row) -> str:
    return json.dumps(row, default=str)


def _function(operator: Operator) -> Callable[..., Any]:
    assert operator.function is not None, f"{operator.kind} {operator.name!r} has no function"
    return operator.function


def _empty(operator: Operator) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=stored(operator.schema))


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    merged = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return merged[0] if merged else batches[0]


def _types(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 500 else text[:497] + "..."
