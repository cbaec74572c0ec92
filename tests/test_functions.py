"""One operator on one batch, without Spark: due times follow their tuples, errors stay with theirs."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from elastream.engine.functions import apply
from elastream.errors import OperatorFailed
from elastream.topology import DUE, Kind, Operator, OperatorName, Replicas, parse_schema, stored

SCHEMA = parse_schema("id long")


def operator(kind: Kind, function: Any, schema: str = "id long") -> Operator:
    return Operator(OperatorName("op"), kind, function, parse_schema(schema), Replicas(1, 1, 1))


def batch(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(ids), DUE: [n * 10 for n in ids]}, schema=stored(SCHEMA))


def pairs(made: pa.RecordBatch) -> list[tuple[int, int]]:
    return list(zip(made.column("id").to_pylist(), made.column(DUE).cast(pa.int64()).to_pylist(), strict=True))


def test_flat_map_gives_each_child_the_due_time_of_its_parent() -> None:
    made = apply(operator(Kind.FLAT_MAP, lambda row: [row] * row["id"]), batch(0, 1, 2))
    assert pairs(made.batch) == [(1, 10), (2, 20), (2, 20)]


def test_filter_keeps_the_due_times_of_what_it_keeps() -> None:
    made = apply(operator(Kind.FILTER, lambda row: row["id"] != 2), batch(1, 2, 3))
    assert pairs(made.batch) == [(1, 10), (3, 30)]


def test_an_error_inside_a_generator_belongs_to_the_tuple_that_caused_it() -> None:
    def children(row: dict[str, int]) -> Iterator[dict[str, int]]:
        yield row
        if row["id"] == 2:
            raise KeyError("two")

    made = apply(operator(Kind.FLAT_MAP, children), batch(1, 2, 3))
    assert pairs(made.batch) == [(1, 10), (3, 30)]
    assert [(f.row, f.due_us) for f in made.failures] == [({"id": 2}, 20)]
    assert made.failures[0].error.startswith("KeyError: 'two' at ")


def test_a_batch_function_that_keeps_the_due_column_keeps_the_times() -> None:
    made = apply(operator(Kind.BATCH, lambda b: b.take(pa.array([2, 0]))), batch(1, 2, 3))
    assert pairs(made.batch) == [(3, 30), (1, 10)]


def test_a_batch_function_with_as_many_new_rows_keeps_the_times_by_position() -> None:
    made = apply(operator(Kind.BATCH, lambda b: pa.table({"id": [7, 8, 9]})), batch(1, 2, 3))
    assert pairs(made.batch) == [(7, 10), (8, 20), (9, 30)]


def test_rows_that_cannot_be_traced_look_as_old_as_the_oldest() -> None:
    made = apply(operator(Kind.BATCH, lambda b: pa.table({"id": [7]})), batch(3, 1, 2))
    assert pairs(made.batch) == [(7, 10)]


def test_a_batch_is_halved_until_only_the_bad_tuples_are_left_out() -> None:
    calls = 0

    def fussy(b: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal calls
        calls += 1
        if 5 in b.column("id").to_pylist():
            raise ZeroDivisionError("five")
        return b

    made = apply(operator(Kind.BATCH, fussy), batch(*range(64)))
    assert [n for n, _ in pairs(made.batch)] == [n for n in range(64) if n != 5]
    assert [f.row for f in made.failures] == [{"id": 5}]
    assert calls == 1 + 2 * 6


def test_pandas_operators_take_and_give_frames() -> None:
    made = apply(operator(Kind.PANDAS, lambda f: f[f["id"] > 1]), batch(1, 2, 3))
    assert pairs(made.batch) == [(2, 20), (3, 30)]
    with pytest.raises(OperatorFailed, match="expected a pandas DataFrame, got int"):
        apply(operator(Kind.PANDAS, lambda f: 3), batch(1))


def test_integers_are_widened_but_words_are_not_numbers() -> None:
    narrow = apply(operator(Kind.BATCH, lambda b: pa.table({"id": pa.array([1], pa.int32())})), batch(1))
    assert narrow.batch.schema == stored(SCHEMA)
    with pytest.raises(OperatorFailed, match=r"operator 'op': declared id int64, returned id string"):
        apply(operator(Kind.BATCH, lambda b: pa.table({"id": ["one"]})), batch(1))


def test_a_frame_that_lost_a_column_is_refused() -> None:
    with pytest.raises(OperatorFailed, match=r"declared columns \['id', 'size'\], returned \['id'\]"):
        apply(operator(Kind.PANDAS, lambda f: pd.DataFrame({"id": f["id"]}), "id long, size long"), batch(1))
