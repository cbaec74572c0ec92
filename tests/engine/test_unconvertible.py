"""Tuples that Python cannot hold, such as a date in the year 12921: each becomes a dead letter, and stops nothing."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from flows import finish

from elastream import ErrorSettings, Settings, Topology, groupings, sources
from elastream.engine.letters import read_letters
from elastream.engine.messages import Receipt, decode_receipt, encode, problem_of
from elastream.errors import Damaged, OperatorFailed
from elastream.lanes import Store, audit
from elastream.testing import LocalEngine
from elastream.topology import App, KeyedStream, parse_schema
from elastream.workload import constant

Row = dict[str, Any]

BAD = 17
"""The number of the tuple that cannot be converted."""

FAR_DAY = 4_000_000
FAR = "12921-08-18"
FAR_US = 2**60


def dated() -> Topology:
    """100 tuples with a date and a time; one date and one time are beyond what Python has."""
    columns = parse_schema("id long, word string, day date, at timestamp")

    def make(numbers: Any) -> pa.RecordBatch:
        bad = numbers == BAD
        days = pa.array(np.where(bad, FAR_DAY, 1).astype(np.int32)).cast(pa.date32())
        times = pa.array(np.where(bad, FAR_US, numbers * 1000)).cast(columns.field("at").type)
        words = [f"w{number % 3}" for number in numbers.tolist()]
        return pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(words), days, times], schema=columns)

    return Topology("test").source("in", sources.replay(constant(200, 0.5), columns, make)).topology


def same_row(row: Row) -> Row:
    return row


def row_twice(row: Row) -> Iterator[Row]:
    yield row
    yield row


def true(row: Row) -> bool:
    return True


def count_rows(key: str, rows: list[Row], state: Any) -> Iterator[Row]:
    state.n += len(rows)
    yield from ({"id": row["id"]} for row in rows)


def same_frame(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["id"]]


def reads_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": row["id"]} for row in batch.to_pylist()])


def count_frame(frame: pd.DataFrame, state: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    counts = frame.groupby("word").size()
    return frame[["id"]], state.assign(n=state["n"] + state["word"].map(counts))


def count_batch(batch: pa.RecordBatch, state: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    out, after = count_frame(batch.to_pandas(), state.to_pandas())
    return pa.RecordBatch.from_pandas(out, preserve_index=False), pa.RecordBatch.from_pandas(
        after, preserve_index=False
    )


def no_parts(key: str, part: Any, state: Any) -> Iterator[Row]:
    """No key is split here."""
    return iter(())


KEYED: dict[str, Any] = {"state": "n long", "initial": {"n": 0}, "schema": "id long", "replicas": 2}


def by_word(flow: Topology) -> KeyedStream:
    return flow.key_by("word", after="in")


KINDS: dict[str, Any] = {
    "map": lambda flow: flow.map("a", same_row, after="in"),
    "flat_map": lambda flow: flow.flat_map("a", row_twice, after="in"),
    "filter": lambda flow: flow.filter("a", true, after="in"),
    "batch": lambda flow: flow.batch("a", reads_rows, after="in", schema="id long"),
    "pandas": lambda flow: flow.pandas("a", same_frame, after="in", schema="id long"),
    "keyed": lambda flow: by_word(flow).process("a", count_rows, **KEYED),
    "keyed_batch": lambda flow: by_word(flow).process("a", count_batch, mode="arrow", **KEYED),
    "keyed_pandas": lambda flow: by_word(flow).process("a", count_frame, mode="pandas", **KEYED),
    "keyed with merge": lambda flow: flow.key_by("word", redirect=True, after="in").process(
        "a", count_rows, merge=no_parts, **KEYED
    ),
    "chained to a source": lambda flow: flow.map("a", same_row, after="in", chain=True),
    "chained": lambda flow: flow.batch("first", lambda batch: batch, after="in").map("a", same_row, chain=True),
}


def run(flow: App, base: Path) -> tuple[pa.Table, list[Row], Any]:
    """What came out, the dead letters, and the counts of operator `a`."""
    with LocalEngine(virtual=True).start(flow, str(base)) as handle:
        finish(handle)
        assert handle.audit().problems == ()
        return handle.output("out"), handle.dead_letters().to_pylist(), handle.totals("a")


@pytest.mark.parametrize("kind", KINDS)
def test_one_date_that_python_cannot_hold_is_one_dead_letter(kind: str, tmp_path: Path) -> None:
    flow = KINDS[kind](dated()).output("out")
    out, letters, _ = run(flow, tmp_path)
    times = 2 if kind == "flat_map" else 1
    assert Counter(out.column("id").to_pylist()) == {n: times for n in range(100) if n != BAD}
    assert [letter["operator"] for letter in letters] == ["a"]
    assert FAR in letters[0]["row"] and '"id": 17' in letters[0]["row"]
    assert "out of range" in letters[0]["error"] or "year" in letters[0]["error"], letters[0]["error"]


@pytest.mark.parametrize("kind", ["map", "keyed", "pandas"])
def test_such_a_tuple_stops_a_run_that_shall_stop_on_errors(kind: str, tmp_path: Path) -> None:
    flow = KINDS[kind](dated()).output("out")
    with (
        pytest.raises(OperatorFailed, match=FAR),
        LocalEngine(virtual=True).start(
            flow, str(tmp_path), settings=Settings(errors=ErrorSettings(on_error="stop"))
        ) as handle,
    ):
        finish(handle)


def test_the_state_of_keys_counts_the_other_tuples_once(tmp_path: Path) -> None:
    flow = by_word(dated()).process("a", count_rows, **KEYED).output("out")
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        states = {row["word"]: row["n"] for row in handle.state("a").to_pylist()}
    assert states == dict(Counter(f"w{n % 3}" for n in range(100) if n != BAD))


def test_a_window_sets_aside_a_tuple_whose_key_it_cannot_hold(tmp_path: Path) -> None:
    flow = dated()
    flow.batch("clip", clip_times, after="in")
    flow.key_by("day", after="clip").window("a", time="at", every_s=10.0, aggregate={"n": "count()"}, replicas=2)
    out, letters, _ = run(flow.output("out", after="a"), tmp_path)
    assert sum(out.column("n").to_pylist()) == 99
    assert [letter["operator"] for letter in letters] == ["a"] and FAR in letters[0]["row"]


def clip_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    times = np.minimum(np.asarray(batch.column("at").cast(pa.int64())), BAD * 1000)
    place = batch.schema.get_field_index("at")
    field = batch.schema.field(place)
    return batch.set_column(place, field, pa.array(times).cast(field.type))


def test_a_sink_that_fails_on_such_rows_gets_them_into_the_dead_letters(tmp_path: Path) -> None:
    flow = dated().sink("a", lambda batch, delivery: batch.to_pylist(), after="in")
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        letters = handle.dead_letters().to_pylist()
        assert handle.audit().problems == ()
    assert FAR in " ".join(letter["row"] for letter in letters)
    assert any('"day": "1970-01-02"' in letter["row"] for letter in letters)


def test_a_chain_before_a_sink_delivers_the_other_rows_in_one_delivery(tmp_path: Path) -> None:
    given: list[tuple[str, list[int]]] = []

    def keep(batch: pa.RecordBatch, delivery: Any) -> None:
        given.append((delivery.id, batch.column("id").to_pylist()))

    flow = dated().map("a", same_row, after="in").sink("keep", keep, chain=True)
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
        assert [letter["operator"] for letter in handle.dead_letters().to_pylist()] == ["a"]
    assert sorted(number for _, ids in given for number in ids) == [n for n in range(100) if n != BAD]
    assert len({name for name, _ in given}) == len(given)


def test_a_keyed_function_that_raises_before_a_sink_gives_it_one_delivery(tmp_path: Path) -> None:
    given: list[tuple[str, list[int]]] = []

    def keep(batch: pa.RecordBatch, delivery: Any) -> None:
        given.append((delivery.id, batch.column("id").to_pylist()))

    flow = by_word(dated()).process("a", count_batch, mode="arrow", **KEYED).sink("keep", keep, chain=True)
    with LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle:
        finish(handle)
    assert sorted(number for _, ids in given for number in ids) == [n for n in range(100) if n != BAD]
    assert len({name for name, _ in given}) == len(given)


NESTED = pa.schema([pa.field("id", pa.int64()), pa.field("key", pa.struct([pa.field("day", pa.date32())]))])


def nested(numbers: Any) -> pa.RecordBatch:
    days = pa.array(np.where(numbers == BAD, FAR_DAY, 1).astype(np.int32)).cast(pa.date32())
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers), pa.StructArray.from_arrays([days], fields=list(NESTED.field("key").type))], schema=NESTED
    )


def test_a_source_sets_aside_a_tuple_that_cannot_be_routed(tmp_path: Path) -> None:
    flow = Topology("test")
    flow.source("in", sources.replay(constant(200, 0.5), NESTED, nested))
    flow.batch("a", reads_ids, after="in", schema="id long", replicas=2, grouping=groupings.fields("key"))
    out, letters, _ = run(flow.output("out", after="a"), tmp_path)
    assert Counter(out.column("id").to_pylist()) == {n: 1 for n in range(100) if n != BAD}
    assert [letter["operator"] for letter in letters] == ["in"] and FAR in letters[0]["row"]
    assert str(audit(Store(str(tmp_path)))) == (
        "read 100 = finished 99 + dropped 0 + dead letters 1 + queued 0; duplicates 0"
    )


def reads_ids(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(["id"])


def test_an_operator_whose_result_cannot_be_routed_has_its_tuple_set_aside(tmp_path: Path) -> None:
    def nest(batch: pa.RecordBatch) -> pa.RecordBatch:
        return nested(np.asarray(batch.column("id")))

    flow = Topology("test")
    flow.source("in", sources.replay(constant(200, 0.5)))
    flow.batch("a", nest, after="in", schema=NESTED, replicas=2)
    flow.batch("b", reads_ids, after="a", schema="id long", replicas=2, grouping=groupings.fields("key"))
    out, letters, _ = run(flow.output("out", after="b"), tmp_path)
    assert Counter(out.column("id").to_pylist()) == {n: 1 for n in range(100) if n != BAD}
    assert [(letter["operator"], letter["row"]) for letter in letters] == [("a", f'{{"id": {BAD}}}')]


def test_a_timer_whose_result_cannot_be_routed_is_set_aside_while_tuples_flow(tmp_path: Path) -> None:
    def count(key: int, rows: list[Row], state: Any) -> Iterator[Row]:
        state.n = key
        state.wake_at(1.0)
        return iter(())

    def wake(key: int, at_s: float, state: Any) -> Iterator[Row]:
        yield {"id": key, "key": {"day": FAR_DAY if key == BAD else 1}}

    flow = Topology("test")
    flow.source("in", sources.replay(constant(200, 0.5)))
    flow.key_by("id", after="in").process("a", count, state="n long", schema=NESTED, on_timer=wake, replicas=2)
    flow.batch("b", reads_ids, after="a", schema="id long", replicas=2, grouping=groupings.fields("key"))
    out, letters, _ = run(flow.output("out", after="b"), tmp_path)
    assert Counter(out.column("id").to_pylist()) == {n: 1 for n in range(100) if n != BAD}
    assert [(letter["operator"], letter["row"]) for letter in letters] == [("a", f'{{"id": {BAD}}}')]


def test_a_source_sets_aside_the_number_of_a_tuple_that_it_cannot_make(tmp_path: Path) -> None:
    def make(numbers: Any) -> dict[str, Any]:
        if BAD in numbers:
            raise LookupError("seventeen")
        return {"id": numbers}

    flow = Topology("test")
    flow.source("in", sources.replay(constant(200, 0.5), parse_schema("id long"), make))
    out, letters, _ = run(flow.map("a", same_row, after="in").output("out"), tmp_path)
    assert Counter(out.column("id").to_pylist()) == {n: 1 for n in range(100) if n != BAD}
    assert [(letter["operator"], letter["row"]) for letter in letters] == [("in", f'{{"number": {BAD}}}')]
    assert "seventeen" in letters[0]["error"]


def test_a_source_that_makes_no_tuple_stops_the_run_with_its_error(tmp_path: Path) -> None:
    def make(numbers: Any) -> dict[str, Any]:
        raise LookupError("never")

    flow = Topology("test")
    flow.source("in", sources.replay(constant(200, 0.5), parse_schema("id long"), make))
    flow.map("a", same_row, after="in").output("out")
    with (
        pytest.raises(OperatorFailed, match=r"source 'in'.*never"),
        LocalEngine(virtual=True).start(flow, str(tmp_path)) as handle,
    ):
        finish(handle)


def test_text_that_is_not_utf_8_is_a_dead_letter_with_its_bytes(tmp_path: Path) -> None:
    def make(numbers: Any) -> pa.RecordBatch:
        texts = pa.array([b"\xff\xfe" if n == BAD else b"ok" for n in numbers.tolist()], pa.binary())
        return pa.RecordBatch.from_arrays(
            [pa.array(numbers), pa.Array.from_buffers(pa.string(), len(texts), texts.buffers())], ["id", "text"]
        )

    columns = parse_schema("id long, text string")
    flow = Topology("test")
    flow.source("in", sources.replay(constant(200, 0.5), columns, make))
    out, letters, _ = run(flow.map("a", same_row, after="in").output("out"), tmp_path)
    assert out.num_rows == 99 and [letter["operator"] for letter in letters] == ["a"]
    assert "//4=" in letters[0]["row"]


def test_an_operator_that_closes_standard_output_is_served_to_the_end(tmp_path: Path) -> None:
    def close(row: Row) -> Row:
        if row["id"] == BAD:
            sys.stdout.close()
        return row

    flow = Topology("test").source("in", sources.replay(constant(200, 0.5))).map("a", close).topology
    with LocalEngine(processes=True).start(flow.output("out", after="a"), str(tmp_path)) as handle:
        finish(handle, 20.0)
        assert handle.output("out").num_rows == 100


def test_an_error_with_half_of_a_character_reaches_the_driver() -> None:
    problem = problem_of(OperatorFailed("half: \ud800"))
    assert decode_receipt(encode(Receipt(1, problem=problem))).problem == ("OperatorFailed", "half: \\ud800")


def test_damaged_and_missing_segments_still_end_the_run(tmp_path: Path) -> None:
    """Rows that cannot be read are damage, and nobody's dead letters."""
    for name, damage, said in (("changed", overwrite, "checksum"), ("gone", Path.unlink, "it is gone")):
        base = tmp_path / name
        flow = dated().map("a", same_row, after="in").output("out")
        # It stops at the first tuple that fails, so tuples wait.
        with (
            pytest.raises(OperatorFailed),
            LocalEngine().start(flow, str(base), settings=Settings(errors=ErrorSettings(on_error="stop"))) as handle,
        ):
            finish(handle)
        for segment in (base / "segments").glob("*[0-9].arrow"):
            damage(segment)
        with pytest.raises(Damaged, match=said), LocalEngine().start(flow, str(base)) as handle:
            finish(handle)
        assert read_letters(Store(str(base))).num_rows == 0


def overwrite(segment: Path) -> None:
    segment.write_bytes(b"\0" * segment.stat().st_size)
