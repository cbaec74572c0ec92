"""What is stored, and the audit that accounts for all of it."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lanes_on_disk import NUMBERED, Clock, Committing, Scoring, flip_byte, numbered, write

from elastream.lanes import Appended, Entry, LaneId, OperatorCounts, SchemaId, Slice, Store, audit
from elastream.lanes import ledger as ledger_module
from elastream.lanes.cleanup import GRACE_S
from elastream.lanes.lease import BaseLease
from elastream.lanes.ledger_files import listed, read_entries, read_state
from elastream.lanes.readers import acknowledge
from elastream.lanes.sealed import unseal
from elastream.lanes.segment_files import ROLL_S, SegmentReader


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def base(store: Store, clock: Clock) -> Scoring:
    made = Scoring(store, clock=clock)
    for tick in range(12):
        clock.now += ROLL_S / 3
        made.tick(entering=10, scored=min(8, tick * 2))
    return made


def _commit(base: Scoring, **more: Any) -> None:
    base.commit(Entry(base.state.entry + 1, 0.0, **more))


def _log(base: Committing) -> Path:
    return sorted((base.store.local_path / "ledger").glob("*.log"))[-1]


def test_nothing_that_is_stored_is_pickled(
    base: Scoring, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "LEAST_BYTES", 1500)
    for _ in range(20):
        base.tick(entering=1, scored=1)
    acknowledge(base.store, "table", "reader", 3)
    lease = BaseLease(base.store)
    lease.acquire()
    # Everything that the entries name is record batches, and everything in the ledger is what its types say.
    pieces = [piece for queue in base.state.lanes.values() for piece in queue.slices]
    reader = SegmentReader(store)
    assert sum(reader.read(piece, NUMBERED).num_rows for piece in pieces) == sum(piece.rows for piece in pieces) > 100
    reader.close()
    assert read_state(store, listed(store)).state.entry == 31
    assert len(read_entries(store, listed(store))) > 1
    kinds = set()
    for path in (tmp_path / "base").rglob("*"):
        if not path.is_file():
            continue
        data = path.read_bytes()
        # Every protocol since the second begins with these; the frames of the newer ones follow at once.
        assert not data.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"))
        assert b"\x80\x04\x95" not in data
        assert b"\x80\x05\x95" not in data
        if path.name == "lock":
            assert json.loads(data)["pid"] == os.getpid()
        elif path.suffix == ".json":
            unseal("reader", data, path.name)
        elif path.suffix == ".claim":
            unseal("lease", data, path.name)
        kinds.add(path.suffix or path.name)
    lease.release()
    assert kinds == {"lock", ".arrow", ".log", ".json", ".claim"}


def test_the_audit_of_a_healthy_base_finds_everything_accounted_for(base: Scoring) -> None:
    found = audit(base.store)
    assert found.problems == ()
    assert found.tick == 11
    scored = 2 * sum(min(8, tick * 2) for tick in range(12))
    assert (found.entered, found.finished, found.dropped) == (240, scored, 0)
    assert found.queued == 240 - scored
    assert found.kept == scored
    assert found.duplicates == 0
    assert found.lanes == {"score": 240 - scored, "table": scored}


def test_the_audit_of_a_base_that_has_not_begun_finds_nothing(store: Store) -> None:
    found = audit(store)
    assert (found.tick, found.entered, found.queued, found.problems) == (-1, 0, 0, ())


def test_the_audit_of_a_base_with_several_logs_and_epochs_is_the_same(
    base: Scoring, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "LEAST_BYTES", 1500)
    for part in range(3):
        for _ in range(50):
            base.tick(entering=3, scored=3)
        base = Scoring(store, f"h0000000000{part}")
    found = audit(base.store)
    assert found.problems == ()
    assert found.entered == 240 + 150 * 6
    assert found.entered == found.finished + found.dropped + found.queued


def test_the_audit_counts_what_was_dropped(base: Scoring) -> None:
    _commit(base, consumed=[("score", 0, 3)], counts={"score": OperatorCounts(failed=1, late=1, overflowed=1)})
    found = audit(base.store)
    assert found.problems == ()
    assert found.dropped == 3


def test_dead_letters_are_kept_and_not_queued(base: Scoring) -> None:
    before = audit(base.store)
    letters = write(base.writer, {LaneId("dead-letters", 0): [numbered(0, 1)]}).appended
    _commit(base, consumed=[("score", 0, 1)], appended=letters, counts={"score": OperatorCounts(failed=1)})
    found = audit(base.store)
    assert found.problems == ()
    assert (found.dropped, found.kept, found.queued) == (1, before.kept + 1, before.queued - 1)


# -- what it finds


def test_the_audit_finds_a_damaged_segment(base: Scoring, tmp_path: Path) -> None:
    piece = base.state.queue(LaneId("score", 1)).slices[-1]
    path = tmp_path / "base" / "segments" / piece.segment
    whole = flip_byte(path, piece.offset + piece.length - 1)
    (problem,) = audit(base.store).problems
    assert problem.startswith(f"score lane 1: segment segments/{piece.segment}")
    assert "checksum" in problem
    path.write_bytes(whole)
    assert audit(base.store).problems == ()


def test_the_audit_finds_all_segments_that_are_missing_each_once_per_lane(base: Scoring, tmp_path: Path) -> None:
    waits = {(lane, piece.segment) for lane, queue in base.state.lanes.items() for piece in queue.slices}
    assert len({lane for lane, _ in waits}) == 3
    assert len({segment for _, segment in waits}) > 3
    for segment in {segment for _, segment in waits}:
        (tmp_path / "base" / "segments" / segment).unlink()
    problems = audit(base.store).problems
    assert len(problems) == len(waits)
    for lane, segment in waits:
        (mine,) = [p for p in problems if p.startswith(f"{lane.operator} lane {lane.lane}: ") and segment in p]
        assert "it is gone, but the ledger needs it" in mine


def test_the_audit_finds_counters_that_do_not_add_up(base: Scoring) -> None:
    _commit(base, counts={"read": OperatorCounts(entered=7)})
    found = audit(base.store)
    assert found.problems == (f"entered 247 is not finished {found.finished} + dropped 0 + queued {found.queued}",)


def test_the_audit_finds_a_tuple_that_vanished(base: Scoring) -> None:
    _commit(base, consumed=[("score", 0, 1)])
    (problem,) = audit(base.store).problems
    assert problem.startswith("entered 240 is not finished")


def _name_twice(base: Scoring, again: Slice, lane: int) -> None:
    _commit(base, appended=[Appended("score", lane, again)], counts={"read": OperatorCounts(entered=again.rows)})


@pytest.mark.parametrize("lane", [0, 1])
def test_the_audit_finds_a_slice_named_twice(base: Scoring, lane: int) -> None:
    _name_twice(base, base.state.queue(LaneId("score", 1)).slices[-1], lane)
    found = audit(base.store)
    assert found.problems == ("1 slices are named twice",)
    assert found.duplicates == 1


def test_the_audit_finds_a_slice_named_again_after_it_was_consumed(base: Scoring) -> None:
    first = next(iter(base.ledger.entries())).appended[0].slice
    assert first not in base.state.queue(LaneId("score", 0)).slices
    assert first.offset == 0
    _name_twice(base, first, 0)
    found = audit(base.store)
    assert found.duplicates == 1
    assert "1 slices are named twice" in found.problems


def test_the_audit_finds_a_slice_that_waits_twice_when_its_entries_are_gone(
    base: Scoring, monkeypatch: pytest.MonkeyPatch
) -> None:
    _name_twice(base, base.state.queue(LaneId("score", 1)).slices[-1], 0)
    for _ in range(3):
        Committing(base.store)
    assert list(base.ledger.entries()) == []
    assert audit(base.store).duplicates == 1


def test_an_entry_of_a_driver_that_was_cut_off_is_not_counted(base: Scoring) -> None:
    new = Scoring(base.store, "h0000000000b")
    piece = base.state.queue(LaneId("score", 1)).slices[-1]
    base.ledger.commit(Entry(base.state.entry + 1, 0.0, appended=[Appended("score", 0, piece)]))
    new.tick(entering=1, scored=1)
    found = audit(base.store)
    assert (found.problems, found.duplicates, found.tick) == ((), 0, 12)


def test_the_audit_finds_a_schema_that_is_not_told(base: Scoring) -> None:
    piece = base.state.queue(LaneId("score", 1)).slices[-1]
    stranger = piece._replace(offset=10**6, schema=SchemaId("stranger"))
    _name_twice(base, stranger, 0)
    (problem,) = audit(base.store).problems
    assert problem == f"score lane 0: {piece.segment} has schema stranger, which the ledger does not tell"


def test_the_audit_says_which_log_is_damaged(base: Scoring) -> None:
    log = _log(base)
    whole = flip_byte(log, log.stat().st_size - 200)
    found = audit(base.store)
    assert found.tick == -1
    (problem,) = found.problems
    assert f"ledger/{log.name}: the record at byte" in problem
    log.write_bytes(whole)
    assert audit(base.store).problems == ()


def test_damage_in_the_log_before_the_last_is_told_though_nobody_needs_it_yet(base: Scoring) -> None:
    old = _log(base)
    Committing(base.store)
    whole = flip_byte(old, old.stat().st_size - 200)
    found = audit(base.store)
    assert (found.tick, found.entered) == (11, 240)
    (problem,) = found.problems
    assert old.name in problem
    old.write_bytes(whole)
    assert audit(base.store).problems == ()


def test_the_audit_of_a_base_of_the_first_edition_says_so(store: Store) -> None:
    store.write("ledger/book-000000000063.json", b"{}")
    (problem,) = audit(store).problems
    assert problem.startswith(f"base {store}: was written by Elastream 0.1")


def test_the_audit_changes_nothing(base: Scoring, tmp_path: Path) -> None:
    def everything() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (tmp_path / "base").rglob("*") if path.is_file()}

    before = everything()
    audit(base.store)
    assert everything() == before


# -- while a driver writes


def _run_on(base: Scoring, clock: Clock, ticks: int) -> None:
    for _ in range(ticks):
        clock.now += ROLL_S
        base.tick(entering=2, scored=min(30, len(base.state.queue(LaneId("score", 0)))))


def test_segments_that_a_driver_serves_and_removes_meanwhile_are_not_reported(
    base: Scoring, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = SegmentReader.read
    waited = {piece.segment for lane in range(2) for piece in base.state.queue(LaneId("score", lane)).slices}
    ran: list[bool] = []

    def later(reader: SegmentReader, piece: Slice, schema: pa.Schema) -> pa.RecordBatch:
        if not ran:
            ran.append(True)
            _run_on(base, clock, 2 + int(2 * GRACE_S / ROLL_S))
        return plain(reader, piece, schema)

    monkeypatch.setattr(SegmentReader, "read", later)
    assert audit(base.store).problems == ()
    assert ran
    assert not waited & set(base.store.sizes("segments"))


def test_a_segment_that_is_really_gone_is_reported_although_the_driver_runs(
    base: Scoring, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = base.state.queue(LaneId("score", 0)).slices[-1]
    plain = SegmentReader.read
    ran: list[bool] = []

    def later(reader: SegmentReader, piece: Slice, schema: pa.Schema) -> pa.RecordBatch:
        if not ran:
            ran.append(True)
            # Something of the lane is served meanwhile, but not the tuples that are lost.
            base.tick(entering=0, scored=1)
            base.store.delete([f"segments/{last.segment}"])
        return plain(reader, piece, schema)

    monkeypatch.setattr(SegmentReader, "read", later)
    problems = audit(base.store).problems
    assert [p for p in problems if p.startswith("score lane 0: ") and last.segment in p]


def test_the_audit_of_a_base_that_is_being_written_reports_nothing(
    base: Scoring, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "LEAST_BYTES", 3000)
    over, failed = threading.Event(), list[BaseException]()

    def drive() -> None:
        try:
            while not over.is_set():
                _run_on(base, clock, 1)
        except BaseException as error:
            failed.append(error)

    driver = threading.Thread(target=drive)
    driver.start()
    try:
        found = [audit(Store(base.store.uri)) for _ in range(25)]
    finally:
        over.set()
        driver.join()
    assert failed == []
    assert [one.problems for one in found if one.problems] == []
    assert all(one.entered == one.finished + one.dropped + one.queued for one in found)
    assert [one.tick for one in found] == sorted(one.tick for one in found)
    assert base.state.entry > 11
