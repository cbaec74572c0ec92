"""One operator on one batch, without Spark: due times follow their tuples, errors stay with theirs."""

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from elastream.engine.worker import functions
from elastream.engine.worker.dead_letters import letters, tuple_of
from elastream.engine.worker.functions import Made, apply
from elastream.engine.worker.in_parts import in_parts
from elastream.errors import OperatorFailed
from elastream.topology import DUE, Kind, Operator, OperatorName, Replicas, parse_schema, stored

SCHEMA = parse_schema("id long")


def operator(kind: Kind, function: Any, schema: str = "id long") -> Operator:
    return Operator(OperatorName("op"), kind, function, parse_schema(schema), Replicas(1, 1, 1))


def batch(*ids: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(ids), DUE: [n * 10 for n in ids]}, schema=stored(SCHEMA))


def pairs(made: Made) -> list[tuple[int, int]]:
    (only,) = made.batches
    return list(zip(only.column("id").to_pylist(), only.column(DUE).cast(pa.int64()).to_pylist(), strict=True))


def test_flat_map_gives_each_child_the_due_time_of_its_parent() -> None:
    made = apply(operator(Kind.FLAT_MAP, lambda row: [row] * row["id"]), batch(0, 1, 2))
    assert pairs(made) == [(1, 10), (2, 20), (2, 20)]


def test_filter_keeps_the_due_times_of_what_it_keeps() -> None:
    made = apply(operator(Kind.FILTER, lambda row: row["id"] != 2), batch(1, 2, 3))
    assert pairs(made) == [(1, 10), (3, 30)]


def test_an_error_inside_a_generator_belongs_to_the_tuple_that_caused_it() -> None:
    def children(row: dict[str, int]) -> Iterator[dict[str, int]]:
        yield row
        if row["id"] == 2:
            raise KeyError("two")

    made = apply(operator(Kind.FLAT_MAP, children), batch(1, 2, 3))
    assert pairs(made) == [(1, 10), (3, 30)]
    assert [(f.row, f.due_us) for f in made.failures] == [({"id": 2}, 20)]
    assert made.failures[0].error.startswith("KeyError: 'two' at ")


def test_a_batch_function_that_keeps_the_due_column_keeps_the_times() -> None:
    made = apply(operator(Kind.BATCH, lambda b: b.take(pa.array([2, 0]))), batch(1, 2, 3))
    assert pairs(made) == [(3, 30), (1, 10)]


def test_a_batch_function_with_as_many_new_rows_keeps_the_times_by_position() -> None:
    made = apply(operator(Kind.BATCH, lambda b: pa.table({"id": [7, 8, 9]})), batch(1, 2, 3))
    assert pairs(made) == [(7, 10), (8, 20), (9, 30)]


def test_rows_that_cannot_be_traced_look_as_old_as_the_oldest() -> None:
    made = apply(operator(Kind.BATCH, lambda b: pa.table({"id": [7]})), batch(3, 1, 2))
    assert pairs(made) == [(7, 10)]


def test_a_batch_is_halved_until_only_the_bad_tuples_are_left_out() -> None:
    calls = 0

    def fussy(b: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal calls
        calls += 1
        if 5 in b.column("id").to_pylist():
            raise ZeroDivisionError("five")
        return b

    made = apply(operator(Kind.BATCH, fussy), batch(*range(64)))
    assert [n for n, _ in pairs(made)] == [n for n in range(64) if n != 5]
    assert [f.row for f in made.failures] == [{"id": 5}]
    assert calls == 1 + 2 * 6


def test_pandas_operators_take_and_give_frames() -> None:
    made = apply(operator(Kind.PANDAS, lambda f: f[f["id"] > 1]), batch(1, 2, 3))
    assert pairs(made) == [(2, 20), (3, 30)]
    with pytest.raises(OperatorFailed, match="expected a pandas DataFrame, got int"):
        apply(operator(Kind.PANDAS, lambda f: 3), batch(1, 2))


def test_integers_are_widened_but_words_are_not_numbers() -> None:
    narrow = apply(operator(Kind.BATCH, lambda b: pa.table({"id": pa.array([1], pa.int32())})), batch(1))
    assert narrow.batches[0].schema == stored(SCHEMA)
    with pytest.raises(OperatorFailed, match=r"operator 'op': declared id int64, returned id string"):
        apply(operator(Kind.BATCH, lambda b: pa.table({"id": ["one"]})), batch(1, 2))


def test_a_frame_that_lost_a_column_is_refused() -> None:
    with pytest.raises(OperatorFailed, match=r"declared columns \['id', 'size'\], returned \['id'\]"):
        apply(operator(Kind.PANDAS, lambda f: pd.DataFrame({"id": f["id"]}), "id long, size long"), batch(1, 2))


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Panic(BaseException):
    """As extensions in Rust raise it: no Exception."""


def raises(error: BaseException) -> Any:
    def function(row: dict[str, Any]) -> Any:
        if row["id"] == 2:
            raise error
        return row

    return function


def gives(value: Any) -> Any:
    return lambda row: value if row["id"] == 2 else row


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        (Kind.FILTER, gives(pd.NA)),
        (Kind.FILTER, gives(np.array([1, 2]))),
        (Kind.MAP, raises(SystemExit(3))),
        (Kind.MAP, raises(asyncio.CancelledError())),
        (Kind.MAP, raises(Panic("panicked at src/lib.rs"))),
        (Kind.MAP, raises(Unprintable())),
        (Kind.MAP, raises(ValueError("half of a character: \ud800"))),
        (Kind.MAP, gives(None)),
        (Kind.MAP, gives({"id": "n/a"})),
        (Kind.MAP, gives({"id": 2**70})),
        (Kind.MAP, gives({"id": 1, "more": 2})),
        (Kind.MAP, gives({1: 2, "x": 3})),
        (Kind.FLAT_MAP, lambda row: [row, None] if row["id"] == 2 else [row]),
        (Kind.FLAT_MAP, lambda row: 7 if row["id"] == 2 else [row]),
    ],
)
def test_one_bad_tuple_is_set_aside_whatever_the_function_does_with_it(kind: Kind, function: Any) -> None:
    made = apply(operator(kind, function), batch(1, 2, 3))
    assert pairs(made) == [(1, 10), (3, 30)]
    assert [failure.row for failure in made.failures] == [{"id": 2}]
    letters([("op", 0, failure) for failure in made.failures], 0.0)


def test_a_text_with_half_of_a_character_is_set_aside() -> None:
    texts = operator(Kind.MAP, lambda row: {"text": "\ud800" if row["id"] == 2 else "fine"}, "text string")
    made = apply(texts, batch(1, 2, 3))
    assert made.batches[0].column("text").to_pylist() == ["fine", "fine"]
    assert [failure.row for failure in made.failures] == [{"id": 2}]


def test_a_letter_has_the_tuple_as_it_came_and_gives_it_back() -> None:
    def spoils(row: dict[str, Any]) -> None:
        row["id"], row["self"] = -1, row
        raise ValueError

    schema = parse_schema("id long, data binary, x double")
    came = pa.RecordBatch.from_pydict(
        {"id": [7], "data": [b"\xff\x00"], "x": [float("nan")], DUE: [5]}, schema=stored(schema)
    )
    spoiled = Operator(OperatorName("op"), Kind.MAP, spoils, schema, Replicas(1, 1, 1))
    letter = letters([("op", 3, failure) for failure in apply(spoiled, came).failures], 0.0)
    assert letter.column("row").to_pylist() == ['{"id": 7, "data": "/wA=", "x": "nan"}']
    again = tuple_of(letter.column("tuple")[0].as_py())
    assert again.schema == stored(schema) and again.column("data").to_pylist() == [b"\xff\x00"]
    assert math.isnan(again.column("x")[0].as_py()) and letter.column(DUE)[0].value == 5


def test_pandas_keeps_large_integers_beside_a_null() -> None:
    seen: list[pd.DataFrame] = []

    def keep(frame: pd.DataFrame) -> pd.DataFrame:
        seen.append(frame)
        return frame

    same = operator(Kind.PANDAS, keep)
    made = apply(same, pa.RecordBatch.from_pydict({"id": [2**53 + 1, None], DUE: [1, 2]}, schema=stored(SCHEMA)))
    assert made.batches[0].column("id").to_pylist() == [2**53 + 1, None]
    assert (seen[0]["id"] + 1).tolist()[0] == 2**53 + 2


def test_more_text_than_a_batch_can_hold_comes_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    def split(operator: Operator, result: pa.Table, due: pa.Array) -> pa.RecordBatch:
        if result.num_rows > 2:
            raise ValueError("more text in one column than Arrow can hold in a batch: 2 GiB")
        return conform(operator, result, due)

    conform = functions.conform
    monkeypatch.setattr(functions, "conform", split)
    made = apply(operator(Kind.BATCH, lambda b: pa.Table.from_batches([b])), batch(*range(8)))
    assert [n for piece in made.batches for n in piece.column("id").to_pylist()] == list(range(8))
    assert not made.failures


@pytest.mark.parametrize("kind", [Kind.MAP, Kind.BATCH, Kind.PANDAS])
def test_a_function_that_never_keeps_to_its_declaration_is_no_fault_of_a_tuple(kind: Kind) -> None:
    with pytest.raises(OperatorFailed, match="operator 'op'"):
        apply(operator(kind, lambda rows: {"other": 1}), batch(1, 2, 3))


def test_a_small_part_in_which_nothing_is_as_declared_says_nothing_of_the_function() -> None:
    """A day beyond the year 9999 has the rows tried in parts, and one of the parts has no good tuple."""
    schema = parse_schema("id long, day date")
    days = pa.array([4_000_000 if n == 0 else n for n in range(8)], pa.int32()).cast(pa.date32())
    rows = pa.RecordBatch.from_arrays(
        [pa.array(range(8)), days, pa.array([0] * 8).cast(stored(schema).field(DUE).type)], schema=stored(schema)
    )
    some = operator(Kind.MAP, lambda row: {"id": "x" if row["id"] in (2, 3) else row["id"]})
    made = in_parts(rows, lambda part: apply(some, part))
    assert [n for piece in made.batches for n in piece.column("id").to_pylist()] == [1, 4, 5, 6, 7]
    assert [(failure.row["id"], failure.undeclared) for failure in made.failures] == [(0, False), (2, True), (3, True)]
    with pytest.raises(OperatorFailed, match="returned other types"):
        in_parts(rows.slice(2, 2), lambda part: apply(some, part))
