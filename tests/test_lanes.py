"""Where tuples wait: queues, segments, the ledger, the hold, clean-up and the audit, on a local disk."""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from pyarrow import ipc

from elastream.errors import BaseInUse, BaseUnusable, Damaged, TopologyError
from elastream.lanes import (
    Appended,
    Book,
    Cleanup,
    Entry,
    Hold,
    LaneId,
    LaneQueue,
    Ledger,
    SchemaId,
    Slice,
    Store,
    audit,
)
from elastream.lanes.cleanup import GRACE_TICKS
from elastream.lanes.ledger import ENTRIES_A_SNAPSHOT
from elastream.lanes.readers import Follower, acknowledge, acknowledged
from elastream.lanes.sealed import seal, unseal
from elastream.lanes.segments import BATCH_BYTES, encode_schema, read_slice, write_segments
from elastream.topology import parse_schema

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=50)

Row = tuple[str, int, int]
"""A tuple's identity: segment, offset of its batch, place in it."""


def _slice(segment: str, offset: int, rows: int, first: int = 0) -> Slice:
    return Slice(segment, offset, 64, 0, SchemaId("s"), first, rows)


def _rows(pieces: "list[Slice] | Iterator[Slice]") -> list[Row]:
    return [(p.segment, p.offset, at) for p in pieces for at in range(p.first, p.first + p.rows)]


def _as_json(book: Book) -> Any:
    """What would be stored, so that tuples and lists are the same."""
    return json.loads(json.dumps(book.to_json()))


# -- queues


@PATIENT
@given(
    st.lists(
        st.tuples(st.just("append"), st.integers(1, 6)) | st.tuples(st.just("consume"), st.integers(0, 12)), max_size=40
    )
)
def test_a_lane_is_first_in_first_out_like_a_list(operations: list[tuple[str, int]]) -> None:
    queue, oracle = LaneQueue(), list[Row]()
    appended = consumed = 0
    for number, (operation, rows) in enumerate(operations):
        if operation == "append":
            piece = _slice("seg", number, rows)
            queue.append(piece)
            oracle += _rows([piece])
            appended += rows
        else:
            taken = min(rows, len(oracle))
            batches_before = {row[:2] for row in oracle}
            done = queue.consume(taken)
            del oracle[:taken]
            consumed += taken
            assert {(p.segment, p.offset) for p in done} == batches_before - {row[:2] for row in oracle}
        assert (queue.appended, queue.consumed, len(queue)) == (appended, consumed, len(oracle))
        for wanted in (0, 1, rows, len(oracle), len(oracle) + 5):
            assert _rows(queue.peek(wanted)) == oracle[:wanted]


def test_a_lane_does_not_give_more_than_waits() -> None:
    queue = LaneQueue()
    queue.append(_slice("seg", 0, 3))
    with pytest.raises(ValueError, match="consume 4 of 3 tuples"):
        queue.consume(4)
    assert _rows(queue.peek(9)) == [("seg", 0, 0), ("seg", 0, 1), ("seg", 0, 2)]


def test_looking_at_a_lane_takes_nothing_and_cuts_nothing() -> None:
    queue = LaneQueue()
    queue.append(_slice("seg", 0, 5))
    assert list(queue.peek(2)) == [_slice("seg", 0, 2)]
    assert list(queue.slices) == [_slice("seg", 0, 5)]


class BookAgainstLists(RuleBasedStateMachine):
    """The book beside plain lists of rows, one list a lane."""

    def __init__(self) -> None:
        super().__init__()
        self.book = Book()
        self.lists: dict[LaneId, list[Row]] = {}
        self.consumed: dict[LaneId, int] = {}
        self.entered = 0
        self.offsets = count()
        self.all_freed: list[str] = []

    @rule(
        writes=st.lists(
            st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(1, 5), st.integers(0, 1)), max_size=6
        ),
        takes=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(1, 9)), max_size=4),
    )
    def tick(self, writes: list[tuple[str, int, int, int]], takes: list[tuple[str, int, int]]) -> None:
        tick = self.book.tick + 1
        before = self._segments()
        appended = tuple(
            Appended(operator, lane, _slice(f"{tick}-{segment}", next(self.offsets), rows))
            for operator, lane, rows, segment in writes
        )
        for operator, lane, piece in appended:
            self.lists.setdefault(LaneId(operator, lane), []).extend(_rows([piece]))
            self.entered += piece.rows
        consumed = []
        for operator, lane, rows in takes:
            queue = self.lists.setdefault(LaneId(operator, lane), [])
            rows = min(rows, len(queue))
            del queue[:rows]
            self.consumed[LaneId(operator, lane)] = self.consumed.get(LaneId(operator, lane), 0) + rows
            consumed.append((operator, lane, rows))
        counts: dict[str, dict[str, float]] = {"a": {"entered": sum(a.slice.rows for a in appended)}}
        entry = Entry(tick, "run", tick, float(tick), tuple(consumed), appended, counts=counts, plan={"n": tick})
        freed = self.book.apply(entry)
        assert len(set(freed)) == len(freed)
        assert set(freed) == (before | {a.slice.segment for a in appended}) - self._segments()
        self.all_freed += freed

    @rule()
    def reload(self) -> None:
        stored = json.loads(json.dumps(self.book.to_json()))
        self.book = Book.from_json(stored)
        assert _as_json(self.book) == stored

    @rule(skipped=st.integers(2, 5))
    def an_entry_out_of_turn_is_refused(self, skipped: int) -> None:
        with pytest.raises(ValueError, match=rf"entry {self.book.tick + skipped} after {self.book.tick}"):
            self.book.apply(Entry(self.book.tick + skipped, "run", 0, 0.0))

    @invariant()
    def the_same_rows_wait_in_the_same_order(self) -> None:
        for lane, rows in self.lists.items():
            queue = self.book.queue(lane)
            assert _rows(queue.peek(10**6)) == rows
            assert len(queue) == len(rows)
            assert queue.consumed == self.consumed.get(lane, 0)
        for operator in "ab":
            assert self.book.queued(operator) == sum(
                len(q) for lane, q in self.lists.items() if lane.operator == operator
            )

    @invariant()
    def segments_in_use_are_those_of_which_rows_wait(self) -> None:
        assert self.book.segments() == self._segments()
        assert len(set(self.all_freed)) == len(self.all_freed)

    @invariant()
    def totals_add_up(self) -> None:
        assert self.book.totals.get("a", {}).get("entered", 0) == self.entered

    def _segments(self) -> set[str]:
        return {row[0] for rows in self.lists.values() for row in rows}


TestBookAgainstLists = BookAgainstLists.TestCase
TestBookAgainstLists.settings = settings(PATIENT, max_examples=25, stateful_step_count=25)


# -- segments


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "base"))


def _numbers(first: int, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"id": np.arange(first, first + rows), "word": [f"w{n}" for n in range(first, first + rows)]}
    )


_COLUMNS = pa.schema(
    [
        ("n", pa.int64()),
        ("s", pa.string()),
        ("l", pa.list_(pa.float64())),
        ("b", pa.bool_()),
        ("t", pa.timestamp("us", tz="UTC")),
    ]
)
_VALUES = st.fixed_dictionaries(
    {
        "n": st.integers(-(2**63), 2**63 - 1) | st.none(),
        "s": st.text(max_size=5) | st.none(),
        "l": st.lists(st.floats(allow_nan=False) | st.none(), max_size=3) | st.none(),
        "b": st.booleans() | st.none(),
        "t": st.integers(0, 2**50) | st.none(),
    }
)


@st.composite
def _pieces(draw: st.DrawFn) -> pa.RecordBatch:
    """A batch, often a piece of a longer one, as routing cuts them."""
    rows = draw(st.lists(_VALUES, max_size=8))
    batch = pa.RecordBatch.from_pylist(rows, schema=_COLUMNS)
    return batch.slice(draw(st.integers(0, len(rows))), draw(st.integers(0, 8)))


@PATIENT
@given(
    written=st.dictionaries(
        st.builds(LaneId, st.sampled_from("ab"), st.integers(0, 3)), st.lists(_pieces(), max_size=4)
    )
)
def test_slices_read_back_what_was_written_to_each_lane(
    tmp_path_factory: pytest.TempPathFactory, written: dict[LaneId, list[pa.RecordBatch]]
) -> None:
    store = Store(str(tmp_path_factory.mktemp("segments")))
    appended, schemas = write_segments(store, 7, written)
    read: dict[LaneId, list[dict[str, Any]]] = {}
    for operator, lane, piece in appended:
        batch = read_slice(store, piece, schemas[piece.schema])
        assert batch.num_rows == piece.rows > 0
        read.setdefault(LaneId(operator, lane), []).extend(batch.to_pylist())
    assert read == {
        lane: rows
        for lane, pieces in written.items()
        if (rows := [row for piece in pieces for row in piece.to_pylist()])
    }
    assert {a.slice.segment for a in appended} == set(store.sizes("segments"))


def test_part_of_a_slice_reads_back_as_that_part(store: Store) -> None:
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [_numbers(100, 50)]})
    part = read_slice(store, piece._replace(first=10, rows=5), schemas[piece.schema])
    assert part.equals(_numbers(110, 5))


def test_a_segment_is_an_arrow_file_that_any_reader_opens(store: Store, tmp_path: Path) -> None:
    appended, _ = write_segments(
        store,
        3,
        {LaneId("a", 0): [_numbers(0, 5), _numbers(5, 5)], LaneId("a", 1): [_numbers(90, 2)], LaneId("b", 0): []},
    )
    (segment,) = {a.slice.segment for a in appended}
    assert segment.startswith("000000000003-")
    with ipc.open_file(str(tmp_path / "base" / "segments" / segment)) as file:
        assert file.schema == _numbers(0, 1).schema
        batches = [file.get_batch(at) for at in range(file.num_record_batches)]
    assert [batch.to_pylist() for batch in batches] == [_numbers(0, 10).to_pylist(), _numbers(90, 2).to_pylist()]
    assert [(a.operator, a.lane, a.slice.rows) for a in appended] == [("a", 0, 10), ("a", 1, 2)]


def test_tuples_of_two_schemas_go_to_two_segments(store: Store) -> None:
    other = pa.RecordBatch.from_pydict({"x": [1.5]})
    appended, schemas = write_segments(store, 0, {LaneId("a", 0): [_numbers(0, 2)], LaneId("b", 0): [other]})
    assert len({a.slice.segment for a in appended}) == len(schemas) == len(store.sizes("segments")) == 2
    assert read_slice(store, appended[1].slice, schemas[appended[1].slice.schema]).equals(other)


def test_nothing_to_write_writes_nothing(store: Store) -> None:
    assert write_segments(store, 0, {LaneId("a", 0): [_numbers(0, 0)], LaneId("a", 1): []}) == ([], {})
    assert store.sizes("segments") == {}


def test_a_big_lane_is_cut_into_batches_of_about_a_mebibyte(store: Store) -> None:
    rows = 10 * BATCH_BYTES // 8
    batch = pa.RecordBatch.from_pydict({"id": np.arange(rows)})
    appended, schemas = write_segments(store, 0, {LaneId("a", 0): [batch.slice(0, 1000), batch.slice(1000)]})
    assert 9 <= len(appended) <= 11
    assert all(a.slice.length <= 1.1 * BATCH_BYTES for a in appended)
    read = [read_slice(store, a.slice, schemas[a.slice.schema]) for a in appended]
    assert pa.Table.from_batches(read).column("id").to_numpy().tolist() == list(range(rows))


def test_a_column_with_a_dictionary_is_refused_early_or_can_be_read_back(store: Store) -> None:
    declared = pa.schema([("word", pa.dictionary(pa.int32(), pa.string()))])
    try:
        schema = parse_schema(declared)
    except TopologyError:
        return
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b", "a"]).dictionary_encode()], schema=schema)
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [batch]})
    assert read_slice(store, piece, schemas[piece.schema]).to_pylist() == batch.to_pylist()


# -- damage


def _flip(path: Path, at: int) -> bytes:
    """Turn one byte of a file; gives what the file was."""
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    return whole


@settings(PATIENT, max_examples=30)
@given(data=st.data())
def test_a_turned_byte_in_a_segment_is_seen_and_named_and_can_be_mended(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    base = tmp_path_factory.mktemp("turned")
    store = Store(str(base))
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [_numbers(0, 20)]})
    path = base / "segments" / piece.segment
    whole = _flip(path, data.draw(st.integers(piece.offset, piece.offset + piece.length - 1)))
    with pytest.raises(Damaged) as caught:
        read_slice(store, piece, schemas[piece.schema])
    assert f"segment segments/{piece.segment} in {base}" in str(caught.value)
    assert "restore the file from a copy and start again" in str(caught.value)
    path.write_bytes(whole)
    assert read_slice(store, piece, schemas[piece.schema]).equals(_numbers(0, 20))


@pytest.mark.parametrize("left", [0, 100])
def test_a_segment_that_was_cut_short_is_damaged(store: Store, tmp_path: Path, left: int) -> None:
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [_numbers(0, 20)]})
    path = tmp_path / "base" / "segments" / piece.segment
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(Damaged, match=piece.segment):
        read_slice(store, piece, schemas[piece.schema])


def test_a_segment_that_is_gone_is_damage_and_not_a_missing_file(store: Store, tmp_path: Path) -> None:
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [_numbers(0, 20)]})
    (tmp_path / "base" / "segments" / piece.segment).unlink()
    with pytest.raises(Damaged, match=f"{piece.segment} in .*: it is gone, but tuples of it wait; restore it"):
        read_slice(store, piece, schemas[piece.schema])


def test_any_byte_of_a_sealed_document_may_turn_and_no_wrong_document_is_believed() -> None:
    document = {
        "tick": 12,
        "consumed": [["score", 3, 250]],
        "counts": {"score": {"processed": 250.0}},
        "plan": {"budget_s": 0.5, "outputs": []},
    }
    whole = seal("entry", document)
    # At least three figures, for then a point between them gives a number that is no count of bytes.
    assert json.loads(whole.split(b"\n")[0])["bytes"] >= 100
    surprises = []
    for at in range(len(whole)):
        for value in range(256):
            if value == whole[at]:
                continue
            turned = whole[:at] + bytes([value]) + whole[at + 1 :]
            try:
                # Another white space in the header changes nothing that is said.
                if unseal("entry", turned, "somewhere") != document:
                    surprises.append((at, value, "believed"))
            except Damaged as error:
                assert str(error).startswith("somewhere: ")
            except Exception as error:
                surprises.append((at, value, repr(error)))
    assert surprises == []


@pytest.mark.parametrize("left", range(0, 120, 7))
def test_a_sealed_document_that_was_cut_short_is_damaged(left: int) -> None:
    whole = seal("entry", {"text": "x" * 60})
    with pytest.raises(Damaged, match="somewhere"):
        unseal("entry", whole[:left], "somewhere")


def test_a_document_of_another_kind_or_version_is_told_apart() -> None:
    with pytest.raises(Damaged, match="expected an elastream-entry, got 'elastream-book'"):
        unseal("entry", seal("book", {}), "here")
    newer = seal("entry", {}).replace(b'"version": 1', b'"version": 9')
    with pytest.raises(Damaged, match="version 9, this Elastream reads 1; use the version that wrote it"):
        unseal("entry", newer, "here")


# -- the ledger


def _entry(tick: int, appended: int = 1, consumed: int = 0, **more: Any) -> Entry:
    return Entry(
        tick,
        "run-1",
        tick - 1,
        1000.0 + tick,
        (("a", tick % 2, consumed),) if consumed else (),
        tuple(Appended("a", (tick + n) % 2, _slice(f"{tick:012d}-x.arrow", 64 * n, 3)) for n in range(appended)),
        {SchemaId(f"s{tick % 3}"): "text"},
        {"a": {"processed": consumed, "busy_s": 0.25}},
        {"read": {"next": tick * 10, "origin_s": 5.5}},
        {"active": {"a": [0, 1]}, "planned_s": tick + 0.5},
        **more,
    )


def _run(store: Store, ticks: int, ledger: Ledger | None = None, book: Book | None = None) -> tuple[Ledger, Book]:
    """Commit entries as the driver does: apply, write, tidy."""
    ledger, book = ledger or Ledger(store), book or Book()
    for tick in range(book.tick + 1, book.tick + 1 + ticks):
        waits = len(book.queue(LaneId("a", tick % 2)))
        entry = _entry(tick, appended=2, consumed=min(5, waits))
        book.apply(entry)
        ledger.commit(entry)
        ledger.tidy(book)
    return ledger, book


def _names(store: Store, start: str) -> list[str]:
    return sorted(name for name in store.sizes("ledger") if name.startswith(start))


def test_a_new_base_gives_an_empty_book(store: Store) -> None:
    assert _as_json(Ledger(store).load()) == _as_json(Book())


@pytest.mark.parametrize("ticks", [1, 5, ENTRIES_A_SNAPSHOT, ENTRIES_A_SNAPSHOT + 1, 250])
def test_loading_gives_the_book_as_of_the_last_commit(store: Store, ticks: int) -> None:
    _, book = _run(store, ticks)
    loaded = Ledger(store).load()
    assert _as_json(loaded) == _as_json(book)
    assert loaded.segments() == book.segments()
    assert loaded.tick == ticks - 1


def test_a_ledger_goes_on_after_every_restart(store: Store) -> None:
    book = Book()
    for ticks in (3, 70, 1, 130, 64, 20):
        ledger = Ledger(store)
        loaded = ledger.load()
        assert _as_json(loaded) == _as_json(book)
        ledger, book = _run(store, ticks, ledger, loaded)
    assert book.tick == 287
    assert _as_json(Ledger(store).load()) == _as_json(book)


def test_the_ledger_does_not_grow_with_the_number_of_commits(store: Store) -> None:
    ledger, book = Ledger(store), Book()
    most = 0
    for _ in range(40):
        ledger, book = _run(store, 16, ledger, book)
        most = max(most, len(store.sizes("ledger")))
        assert len(_names(store, "book-")) <= 2
    assert book.tick == 639
    # Two snapshots, the entries since the older one, and as many bytes of entries as a snapshot takes.
    assert most <= 4 * ENTRIES_A_SNAPSHOT


def test_entries_that_are_kept_can_be_read_one_by_one(store: Store) -> None:
    ledger, _ = _run(store, 5)
    assert [entry.to_json() for entry in ledger.entries()] == [
        Entry.from_json(json.loads(json.dumps(entry.to_json()))).to_json() for entry in map(ledger.read, range(5))
    ]
    assert ledger.read(3).sources == {"read": {"next": 30, "origin_s": 5.5}}
    assert ledger.has(4)
    assert not ledger.has(5)


def test_an_entry_missing_in_the_middle_is_damage(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, 10)
    path = tmp_path / "base" / "ledger" / "entry-000000000006.json"
    whole = path.read_bytes()
    path.unlink()
    with pytest.raises(Damaged) as caught:
        Ledger(store).load()
    assert "entry 6 is missing between 5 and 7; restore ledger/entry-000000000006.json" in str(caught.value)
    path.write_bytes(whole)
    assert _as_json(Ledger(store).load()) == _as_json(book)


def test_the_first_entry_missing_is_damage(store: Store, tmp_path: Path) -> None:
    _run(store, 10)
    (tmp_path / "base" / "ledger" / "entry-000000000000.json").unlink()
    with pytest.raises(Damaged, match="entry 0 is missing"):
        Ledger(store).load()


@pytest.mark.parametrize("place", [0, 40, -1, -20])
def test_a_turned_byte_in_an_entry_is_seen_and_named_and_can_be_mended(
    store: Store, tmp_path: Path, place: int
) -> None:
    _, book = _run(store, 10)
    path = tmp_path / "base" / "ledger" / "entry-000000000004.json"
    # The last byte is the end of the line, which says nothing.
    whole = _flip(path, place if place >= 0 else len(path.read_bytes()) + place - 1)
    with pytest.raises(Damaged) as caught:
        Ledger(store).load()
    assert f"{store}/ledger/entry-000000000004.json" in str(caught.value)
    path.write_bytes(whole)
    assert _as_json(Ledger(store).load()) == _as_json(book)


def test_a_damaged_snapshot_falls_back_to_the_one_before(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, 250)
    older, newest = _names(store, "book-")
    path = tmp_path / "base" / "ledger" / newest
    _flip(path, 200)
    assert _as_json(Ledger(store).load()) == _as_json(book)
    path.unlink()
    assert _as_json(Ledger(store).load()) == _as_json(book)
    assert older < newest


def test_the_only_snapshot_may_be_damaged_while_all_entries_are_there(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, ENTRIES_A_SNAPSHOT + 5)
    (only,) = _names(store, "book-")
    _flip(tmp_path / "base" / "ledger" / only, 200)
    assert _as_json(Ledger(store).load()) == _as_json(book)


def test_when_both_snapshots_are_damaged_the_newest_is_named(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, 250)
    paths = [tmp_path / "base" / "ledger" / name for name in _names(store, "book-")]
    wholes = [_flip(path, 200) for path in paths]
    with pytest.raises(Damaged, match=paths[-1].name):
        Ledger(store).load()
    paths[0].write_bytes(wholes[0])
    assert _as_json(Ledger(store).load()) == _as_json(book)


def test_after_a_fall_back_the_damaged_snapshot_is_not_the_one_that_is_kept(store: Store, tmp_path: Path) -> None:
    _run(store, 250)
    folder = tmp_path / "base" / "ledger"
    _flip(folder / _names(store, "book-")[-1], 200)
    ledger = Ledger(store)
    book = ledger.load()
    before = _names(store, "book-")
    while _names(store, "book-") == before:
        ledger, book = _run(store, 1, ledger, book)
    # One more damage, and there must still be a snapshot to begin from.
    _flip(folder / _names(store, "book-")[-1], 200)
    assert _as_json(Ledger(store).load()) == _as_json(book)


def test_an_unfinished_file_is_ignored_and_removed(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, 5)
    write_segments(store, 5, {LaneId("a", 0): [_numbers(0, 3)]})
    folder = tmp_path / "base" / "ledger"
    (folder / "entry-000000000005.json.unfinished").write_bytes(b'{"format": "elastr')
    (tmp_path / "base" / "segments" / "000000000005-half.arrow.unfinished").write_bytes(b"ARROW1")
    assert _as_json(Ledger(store).load()) == _as_json(book)
    assert "entry-000000000005.json.unfinished" not in store.sizes("ledger")
    for name in ("ledger", "segments", "never-made"):
        store.remove_unfinished(name)
    assert not list((tmp_path / "base").rglob("*.unfinished"))
    assert len(store.sizes("segments")) == 1
    assert _as_json(Ledger(store).load()) == _as_json(book)


def test_a_copy_that_someone_made_of_an_entry_is_not_taken_for_the_entry(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, 10)
    path = tmp_path / "base" / "ledger" / "entry-000000000006.json"
    copy = path.with_name(path.name + ".bak")
    copy.write_bytes(path.read_bytes())
    assert _as_json(Ledger(store).load()) == _as_json(book)
    path.unlink()
    with pytest.raises(Damaged, match="entry 6 is missing"):
        Ledger(store).load()


def test_a_write_is_whole_or_not_there(store: Store, tmp_path: Path) -> None:
    store.write("ledger/x", b"first")
    store.write("ledger/x", b"second, and longer")
    assert store.read("ledger/x") == b"second, and longer"
    assert store.sizes("ledger") == {"x": 18}
    assert [path.name for path in (tmp_path / "base" / "ledger").iterdir()] == ["x"]
    store.delete(["ledger/x", "ledger/never-was"])
    assert not store.exists("ledger/x")


_FILL_THE_DISK = """
import resource, sys
from elastream.lanes import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    Store(sys.argv[1]).write("ledger/x", bytes(1_000_000))
except OSError:
    sys.exit(7)
"""


def test_a_write_that_breaks_off_leaves_what_was_there(store: Store, tmp_path: Path) -> None:
    store.write("ledger/x", b"before")
    # A limit on the size of files does to one process what a full disk does to all.
    done = subprocess.run([sys.executable, "-c", _FILL_THE_DISK, store.uri], check=False)
    assert done.returncode == 7
    assert store.read("ledger/x") == b"before"
    assert store.sizes("ledger") == {"x": 6}
    assert [path.name for path in (tmp_path / "base" / "ledger").glob("*.unfinished")] == ["x.unfinished"]


def _commit_seconds(store: Store, ledger: Ledger, book: Book, ticks: int) -> float:
    """The median of a few commits that do the same little work."""
    took = []
    for _ in range(ticks):
        tick = book.tick + 1
        entry = Entry(
            tick,
            "run",
            tick,
            0.0,
            (("a", 0, 1),),
            (Appended("a", 0, _slice(f"{tick:012d}-x.arrow", 0, 1)),),
            plan={"n": 1},
        )
        started = time.perf_counter()
        ledger.commit(entry)
        book.apply(entry)
        took.append(time.perf_counter() - started)
    return statistics.median(took)


def test_a_commit_costs_what_the_tick_did_and_not_what_waits(tmp_path: Path) -> None:
    runs = {}
    for pending in (10, 100_000):
        store = Store(str(tmp_path / str(pending)))
        ledger, book = Ledger(store), Book()
        book.apply(
            Entry(0, "run", 0, 0.0, (), tuple(Appended("a", 0, _slice("0-x.arrow", n, 1)) for n in range(pending)))
        )
        runs[pending] = store, ledger, book
    best = dict.fromkeys(runs, float("inf"))
    # Turn by turn, and the best of them: what else the machine does falls on both.
    for _ in range(8):
        for pending, run in runs.items():
            best[pending] = min(best[pending], _commit_seconds(*run, ticks=15))
    assert len(runs[100_000][2].queue(LaneId("a", 0))) == 100_000
    assert best[100_000] <= 3 * best[10]


# -- clean-up


def test_the_disk_holds_what_waits_and_a_few_ticks_more(store: Store) -> None:
    book, cleanup, random = Book(), Cleanup(store), np.random.default_rng(7)
    lane, freed_at = LaneId("a", 0), list[list[str]]()
    for tick in range(120):
        appended: list[Appended] = []
        for task in range(3):
            made, _ = write_segments(store, tick, {lane: [_numbers(tick * 30 + task * 10, 10)]})
            appended += made
        # Mostly as much goes as comes, now and then a backlog builds up and is worked off.
        wanted = int(random.integers(0, 60)) if tick < 100 else 10**6
        taken = min(wanted, len(book.queue(lane)))
        freed_at.append(book.apply(Entry(tick, "run", tick, 0.0, (("a", 0, taken),) if taken else (), tuple(appended))))
        cleanup.after_commit(book, freed_at[-1])
        in_grace = {segment for freed in freed_at[-GRACE_TICKS:] for segment in freed}
        assert set(store.sizes("segments")) == book.segments() | in_grace
    # Worked off: only the last tick's three wait, and three of each tick in the grace.
    assert len(store.sizes("segments")) == 3 + GRACE_TICKS * 3


def test_a_consumed_segment_stays_for_the_grace_and_then_goes(store: Store) -> None:
    book, cleanup = Book(), Cleanup(store)
    appended, _ = write_segments(store, 0, {LaneId("a", 0): [_numbers(0, 4)]})
    cleanup.after_commit(book, book.apply(Entry(0, "run", 0, 0.0, (), tuple(appended))))
    freed = book.apply(Entry(1, "run", 1, 0.0, (("a", 0, 4),)))
    assert freed == [appended[0].slice.segment]
    cleanup.after_commit(book, freed)
    there = []
    for tick in range(2, 2 + GRACE_TICKS):
        there.append(len(store.sizes("segments")))
        cleanup.after_commit(book, book.apply(Entry(tick, "run", tick, 0.0)))
    assert there == [1] * GRACE_TICKS
    assert store.sizes("segments") == {}


def test_the_sweep_takes_only_segments_of_committed_ticks_that_nothing_names(store: Store) -> None:
    def written(tick: int) -> Appended:
        return write_segments(store, tick, {LaneId("a", 0): [_numbers(0, 4)]})[0][0]

    book, cleanup = Book(), Cleanup(store)
    named, failed_attempt = written(0), written(0)
    book.apply(Entry(0, "run", 0, 0.0, (), (named,)))
    consumed = written(1)
    cleanup.after_commit(book, book.apply(Entry(1, "run", 1, 0.0, (), (consumed,))))
    freed = book.apply(Entry(2, "run", 2, 0.0, (("a", 0, 4),)))
    cleanup.after_commit(book, freed)
    in_flight = written(3)
    assert freed == [named.slice.segment]
    assert cleanup.sweep(book) == 1
    kept = {a.slice.segment for a in (named, consumed, in_flight)}
    assert set(store.sizes("segments")) == kept
    assert failed_attempt.slice.segment not in kept
    # After a restart nobody remembers the grace of what was consumed.
    assert Cleanup(store).sweep(book) == 1
    assert set(store.sizes("segments")) == {consumed.slice.segment, in_flight.slice.segment}


def test_a_segment_that_may_be_read_again_outlives_a_restart_by_a_few_ticks(store: Store) -> None:
    consumed = write_segments(store, 0, {LaneId("a", 0): [_numbers(0, 4)]})[0][0]
    book = Book()
    book.apply(Entry(0, "run", 0, 0.0, (), (consumed,)))
    book.apply(Entry(1, "run", 1, 0.0, (("a", 0, 4),)))
    cleanup = Cleanup(store)
    assert cleanup.sweep(book, keep=[consumed.slice.segment]) == 0
    for tick in range(2, 2 + GRACE_TICKS):
        assert set(store.sizes("segments")) == {consumed.slice.segment}
        book.apply(Entry(tick, "run", tick, 0.0))
        cleanup.after_commit(book, [])
    assert not store.sizes("segments")


def test_the_sweep_leaves_files_alone_that_are_not_segments(store: Store, tmp_path: Path) -> None:
    orphan, _ = write_segments(store, 0, {LaneId("a", 0): [_numbers(0, 4)]})
    book = Book()
    book.apply(Entry(0, "run", 0, 0.0))
    # Shared disks and file browsers put such files everywhere.
    for name in (".nfs000000000123", ".DS_Store"):
        (tmp_path / "base" / "segments" / name).write_bytes(b"")
    assert Cleanup(store).sweep(book) == len(orphan) == 1
    assert set(store.sizes("segments")) == {".nfs000000000123", ".DS_Store"}


# -- the hold

_HOLDER = """
import sys
from elastream.lanes import Hold, Store
hold = Hold(Store(sys.argv[1]))
hold.take()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(store: Store) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has taken the base."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, store.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_driver_is_refused_and_told_who_holds_the_base(store: Store, holder: "subprocess.Popen[str]") -> None:
    with pytest.raises(BaseInUse) as caught:
        Hold(store).take()
    assert f'"pid": {holder.pid}' in str(caught.value)
    assert str(store) in str(caught.value)
    assert "stop it, or choose another base" in str(caught.value)


def test_a_base_is_free_as_soon_as_its_driver_was_killed(store: Store, holder: "subprocess.Popen[str]") -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    hold = Hold(store)
    hold.take()
    with pytest.raises(BaseInUse, match=f'"pid": {os.getpid()}'):
        Hold(store).take()
    hold.release()


def test_a_released_base_can_be_taken_again(store: Store) -> None:
    first, second = Hold(store), Hold(store)
    first.take()
    first.renew()
    first.release()
    second.take()
    with pytest.raises(BaseInUse):
        first.take()
    second.release()


def test_a_refused_driver_does_not_wipe_out_who_holds_the_base(store: Store) -> None:
    hold = Hold(store)
    hold.take()
    for _ in range(2):
        with pytest.raises(BaseInUse, match=str(os.getpid())):
            Hold(store).take()
    hold.release()


@pytest.mark.parametrize("below", ["", "deeper", "much/deeper"])
def test_a_base_that_cannot_be_a_directory_is_unusable(tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")
    store = Store(str(file / below))
    with pytest.raises(BaseUnusable) as caught:
        Hold(store).take()
    assert str(caught.value).startswith(f"base {store}: cannot be written: ")
    assert "choose another base or mend its permissions" in str(caught.value)
    assert file.read_text() == "not a directory"


def test_a_base_on_no_known_filesystem_is_unusable() -> None:
    with pytest.raises(BaseUnusable, match="base nosuch://somewhere/dir: pyarrow cannot open it"):
        Store("nosuch://somewhere/dir")


def test_a_local_base_may_be_given_as_an_address(tmp_path: Path) -> None:
    store = Store((tmp_path / "base").as_uri())
    store.write("ledger/x", b"data")
    assert store.is_local
    assert store.local_path == tmp_path / "base"
    assert (tmp_path / "base" / "ledger" / "x").read_bytes() == b"data"


# -- readers of outputs


def test_an_output_is_kept_until_its_slowest_reader_has_it(store: Store) -> None:
    assert acknowledged(store, "table") is None
    acknowledge(store, "table", "dashboard", 40)
    acknowledge(store, "table", "archive", 15)
    assert acknowledged(store, "table") == 15
    acknowledge(store, "table", "archive", 90)
    assert acknowledged(store, "table") == 40
    assert acknowledged(store, "another") is None


def test_a_reader_sees_only_what_is_committed(store: Store) -> None:
    ledger, book = Ledger(store), Book()
    appended, schemas = write_segments(store, 0, {LaneId("table", 0): [_numbers(0, 10)]})
    assert Follower(store).waiting("table").slices == ()
    texts = {key: encode_schema(schema) for key, schema in schemas.items()}
    for entry in (
        Entry(0, "run", 0, 0.0, (), tuple(appended), texts),
        Entry(1, "run", 1, 0.0, (("table", 0, 4),)),
    ):
        ledger.commit(entry)
        book.apply(entry)
    seen = Follower(store).waiting("table")
    assert (seen.first, seen.stop, seen.schemas) == (4, 10, texts)
    assert _rows(list(seen.slices)) == _rows(list(book.queue(LaneId("table", 0)).slices))


# -- what is stored, and the audit


class Base:
    """A small base with real tuples: `read` feeds `score`, what `score` has done waits in `table`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ledger = Ledger(store)
        self.book = Book()
        self.cleanup = Cleanup(store)

    def tick(self, entering: int, scored: int, **more: Any) -> Entry:
        tick = self.book.tick + 1
        batches = {LaneId("score", n): [_numbers(1000 * tick + 100 * n, entering)] for n in range(2)}
        batches[LaneId("table", 0)] = [_numbers(0, 2 * scored)]
        appended, schemas = write_segments(self.store, tick, batches)
        entry = Entry(
            tick,
            "run",
            tick,
            float(tick),
            tuple(("score", n, scored) for n in range(2) if scored),
            tuple(appended),
            {key: encode_schema(schema) for key, schema in schemas.items()},
            {"read": {"entered": 2 * entering}, "score": {"finished": 2 * scored, "busy_s": 0.5}},
            plan={"outputs": ["table"]},
            **more,
        )
        self.commit(entry)
        return entry

    def commit(self, entry: Entry) -> None:
        self.ledger.commit(entry)
        self.cleanup.after_commit(self.book, self.book.apply(entry))
        self.ledger.tidy(self.book)


@pytest.fixture
def base(store: Store) -> Base:
    made = Base(store)
    for tick in range(12):
        made.tick(entering=10, scored=min(8, tick * 2))
    return made


def test_nothing_that_is_stored_is_pickled(base: Base, tmp_path: Path) -> None:
    for _ in range(ENTRIES_A_SNAPSHOT * 3):
        base.tick(entering=1, scored=1)
    acknowledge(base.store, "table", "reader", 3)
    hold = Hold(base.store)
    hold.take()
    files = [path for path in (tmp_path / "base").rglob("*") if path.is_file()]
    kinds = set()
    for path in files:
        data = path.read_bytes()
        # Every protocol since the second begins with these; the frames of the newer ones follow at once.
        assert not data.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"))
        assert b"\x80\x04\x95" not in data
        assert b"\x80\x05\x95" not in data
        if path.name == "lock":
            assert json.loads(data)["pid"] == os.getpid()
            kinds.add("lock")
        elif path.suffix == ".arrow":
            with ipc.open_file(pa.py_buffer(data)) as file:
                assert file.num_record_batches > 0
            kinds.add("segment")
        else:
            kind = json.loads(data.split(b"\n")[0])["format"].removeprefix("elastream-")
            unseal(kind, data, path.name)
            kinds.add(kind)
    hold.release()
    assert kinds == {"lock", "segment", "entry", "book", "reader"}


def test_the_audit_of_a_healthy_base_finds_everything_accounted_for(base: Base) -> None:
    found = audit(base.store)
    assert found.problems == ()
    assert found.tick == 11
    scored = 2 * sum(min(8, tick * 2) for tick in range(12))
    assert (found.entered, found.finished, found.dropped) == (240, scored, 0)
    assert found.queued == 240 - scored
    assert found.kept == scored
    assert found.duplicates == 0
    assert found.lanes == {"score": 240 - scored, "table": scored}


def test_the_audit_of_a_base_with_snapshots_is_the_same(base: Base) -> None:
    for _ in range(150):
        base.tick(entering=3, scored=3)
    found = audit(base.store)
    assert found.problems == ()
    assert found.entered == 240 + 150 * 6
    assert found.entered == found.finished + found.dropped + found.queued


def test_the_audit_counts_what_was_dropped(base: Base) -> None:
    tick = base.book.tick + 1
    consumed = (("score", 0, 3),)
    base.commit(
        Entry(
            tick,
            "run",
            tick,
            0.0,
            consumed,
            counts={"score": {"failed": 1, "late": 1, "overflowed": 1}},
            plan=base.book.plan,
        )
    )
    found = audit(base.store)
    assert found.problems == ()
    assert found.dropped == 3


def _waiting_segment(base: Base) -> str:
    return base.book.queue(LaneId("score", 1)).slices[-1].segment


def test_the_audit_finds_a_damaged_segment(base: Base, tmp_path: Path) -> None:
    piece = base.book.queue(LaneId("score", 1)).slices[-1]
    path = tmp_path / "base" / "segments" / piece.segment
    whole = _flip(path, piece.offset + piece.length - 1)
    (problem,) = audit(base.store).problems
    assert problem.startswith(f"score lane 1: segment segments/{piece.segment}")
    assert "checksum" in problem
    path.write_bytes(whole)
    assert audit(base.store).problems == ()


def test_the_audit_finds_a_missing_segment(base: Base, tmp_path: Path) -> None:
    segment = _waiting_segment(base)
    waits = [lane for lane, queue in base.book.lanes.items() if any(s.segment == segment for s in queue.slices)]
    (tmp_path / "base" / "segments" / segment).unlink()
    problems = audit(base.store).problems
    assert len(problems) == len(waits) == 3
    assert all(segment in problem and "it is gone, but tuples of it wait" in problem for problem in problems)


def test_the_audit_finds_counters_that_do_not_add_up(base: Base) -> None:
    tick = base.book.tick + 1
    base.commit(Entry(tick, "run", tick, 0.0, counts={"read": {"entered": 7}}, plan=base.book.plan))
    found = audit(base.store)
    assert found.problems == (f"entered 247 is not finished {found.finished} + dropped 0 + queued {found.queued}",)


def test_the_audit_finds_a_tuple_that_vanished(base: Base) -> None:
    tick = base.book.tick + 1
    base.commit(Entry(tick, "run", tick, 0.0, consumed=(("score", 0, 1),), plan=base.book.plan))
    (problem,) = audit(base.store).problems
    assert problem.startswith("entered 240 is not finished")


def _name_twice(base: Base, again: Slice, lane: int) -> None:
    tick = base.book.tick + 1
    base.commit(
        Entry(
            tick,
            "run",
            tick,
            0.0,
            appended=(Appended("score", lane, again),),
            counts={"read": {"entered": again.rows}},
            plan=base.book.plan,
        )
    )


@pytest.mark.parametrize("lane", [0, 1])
def test_the_audit_finds_a_slice_named_twice(base: Base, lane: int) -> None:
    _name_twice(base, base.book.queue(LaneId("score", 1)).slices[-1], lane)
    found = audit(base.store)
    assert len(found.problems) == 1
    assert "named twice" in found.problems[0]
    assert found.duplicates > 0


def test_the_audit_counts_a_slice_named_twice_once(base: Base) -> None:
    _name_twice(base, base.book.queue(LaneId("score", 1)).slices[-1], 0)
    assert audit(base.store).duplicates == 1


def test_the_audit_finds_a_slice_named_again_after_it_was_consumed(base: Base) -> None:
    first = base.ledger.read(1).appended[0]
    assert first.slice not in base.book.queue(LaneId("score", 0)).slices
    _name_twice(base, first.slice, 0)
    found = audit(base.store)
    assert found.duplicates == 1
    assert any("named twice" in problem for problem in found.problems)


def test_the_audit_says_which_entry_is_damaged(base: Base, tmp_path: Path) -> None:
    path = tmp_path / "base" / "ledger" / "entry-000000000004.json"
    whole = _flip(path, 200)
    (problem,) = audit(base.store).problems
    assert "ledger/entry-000000000004.json" in problem
    path.write_bytes(whole)
    assert audit(base.store).problems == ()


def test_the_audit_changes_nothing(base: Base, tmp_path: Path) -> None:
    def everything() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (tmp_path / "base").rglob("*") if path.is_file()}

    before = everything()
    audit(base.store)
    assert everything() == before
