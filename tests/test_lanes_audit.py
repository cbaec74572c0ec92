"""What is stored, and the audit that accounts for all of it."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lanes_on_disk import flip_byte, numbered
from pyarrow import ipc

from elastream.lanes import Appended, Book, Cleanup, Entry, Hold, LaneId, Ledger, Slice, Store, audit
from elastream.lanes.ledger import ENTRIES_A_SNAPSHOT
from elastream.lanes.readers import acknowledge
from elastream.lanes.sealed import unseal
from elastream.lanes.segments import encode_schema, write_segments


class Base:
    """A small base with real tuples: `read` feeds `score`, what `score` has done waits in `table`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ledger = Ledger(store)
        self.book = Book()
        self.cleanup = Cleanup(store)

    def tick(self, entering: int, scored: int, **more: Any) -> Entry:
        tick = self.book.tick + 1
        batches = {LaneId("score", n): [numbered(1000 * tick + 100 * n, entering)] for n in range(2)}
        batches[LaneId("table", 0)] = [numbered(0, 2 * scored)]
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
    whole = flip_byte(path, piece.offset + piece.length - 1)
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
    whole = flip_byte(path, 200)
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
