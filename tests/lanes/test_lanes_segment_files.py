"""Segment files: when they are ended, one per write where nothing can be appended, many threads, and a full disk."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from lanes_on_disk import (
    HOST,
    KEPT,
    NUMBERED,
    A,
    B,
    Clock,
    numbered,
    segment_bytes,
    write,
    write_one,
)

from elastream.lanes import LaneId, Slice, Store
from elastream.lanes import segment_files as files_module
from elastream.lanes.segment_files import ROLL_S, BatchCache, SegmentReader, SegmentWriter


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def writer(store: Store, clock: Clock) -> SegmentWriter:
    return SegmentWriter(store, HOST, appends=True, clock=clock)


# -- when files are ended


def test_a_file_is_ended_when_it_is_large(store: Store, writer: SegmentWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    size = write_one(writer, numbered(0, 50)).length
    monkeypatch.setattr(files_module, "ROLL_BYTES", 3 * size)
    names = [write_one(writer, numbered(0, 50)).segment for _ in range(7)]
    assert names == [f"{HOST}-{n:06d}.arrow" for n in (1, 1, 2, 2, 2, 3, 3)]
    assert writer.ended() == [f"{HOST}-000001.arrow", f"{HOST}-000002.arrow"]
    assert writer.ended() == []
    assert [segment_bytes(store)[f"{HOST}-{n:06d}.arrow"] for n in (1, 2, 3)] == [3 * size, 3 * size, 2 * size]


def test_a_file_is_ended_when_it_is_old(writer: SegmentWriter, clock: Clock) -> None:
    names = []
    for _ in range(5):
        names.append(write_one(writer, numbered(0, 5)).segment)
        clock.now += ROLL_S / 2
    assert names == [f"{HOST}-{n:06d}.arrow" for n in (1, 1, 2, 2, 3)]
    assert writer.ended() == [f"{HOST}-000001.arrow", f"{HOST}-000002.arrow"]


def test_a_file_is_told_of_only_when_all_that_wrote_to_it_have_sent_their_receipts(
    writer: SegmentWriter, clock: Clock
) -> None:
    quick, slow, slowest = (write(writer, {A: [numbered(0, 5)]}) for _ in range(3))
    writer.release(quick)
    clock.now += ROLL_S
    later = write(writer, {A: [numbered(0, 5)]})
    told = []
    for written in (later, slow, slowest):
        writer.release(written)
        told.append(writer.ended())
    assert told == [[], [], [quick.appended[0].slice.segment]]
    assert later.appended[0].slice.segment not in told[-1]


def test_rows_that_are_kept_go_to_a_file_apart(store: Store, writer: SegmentWriter, clock: Clock) -> None:
    written = write(writer, {A: [numbered(0, 5)], B: [numbered(50, 5)], LaneId("a", 1): [numbered(9, 1)]}, KEPT)
    writer.release(written)
    of = {(a.operator, a.lane): a.slice.segment for a in written.appended}
    assert of["a", 0] == of["a", 1] == f"{HOST}-000001.arrow"
    assert of["b", 0] == f"{HOST}-000002k.arrow"
    assert write_one(writer, numbered(55, 5), B).segment == of["b", 0]
    clock.now += ROLL_S
    # Each is ended when something more is to be written to it.
    write_one(writer, numbered(60, 5), B)
    assert writer.ended() == [of["b", 0]]
    writer.close()
    assert of["a", 0] in writer.ended()


@pytest.mark.parametrize("appends", [True, False])
def test_a_writer_that_closes_has_ended_all_its_files(store: Store, appends: bool) -> None:
    writer = SegmentWriter(store, HOST, appends=appends)
    write_one(writer, numbered(0, 5))
    write_one(writer, numbered(0, 5), B)
    writer.close()
    assert sorted(writer.ended()) == sorted(segment_bytes(store))
    assert len(segment_bytes(store)) == 2


def test_two_writers_never_meet_in_a_file(store: Store, writer: SegmentWriter) -> None:
    write_one(writer, numbered(0, 5))
    with pytest.raises(FileExistsError):
        write_one(SegmentWriter(store, HOST, appends=True), numbered(0, 5))


# -- where files cannot be appended to


def test_each_write_is_a_file_of_its_own_that_is_ended_at_once(store: Store) -> None:
    writer = SegmentWriter(store, HOST, appends=False)
    written = write(writer, {A: [numbered(0, 5)], LaneId("a", 1): [numbered(5, 5)], B: [numbered(9, 5)]}, KEPT)
    more = write(writer, {A: [numbered(10, 5)]}, KEPT)
    assert [a.slice.segment for a in (*written.appended, *more.appended)] == [
        f"{HOST}-000001.arrow",
        f"{HOST}-000001.arrow",
        f"{HOST}-000002k.arrow",
        f"{HOST}-000003.arrow",
    ]
    assert writer.ended() == []
    writer.release(written)
    assert writer.ended() == [f"{HOST}-000001.arrow", f"{HOST}-000002k.arrow"]
    writer.release(more)
    assert writer.ended() == [f"{HOST}-000003.arrow"]
    reader = SegmentReader(store)
    assert [reader.read(a.slice, NUMBERED).column("id")[0].as_py() for a in written.appended] == [0, 5, 9]


def test_such_files_are_written_side_by_side(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every write waits until all four are under way.
    meeting = threading.Barrier(4)
    plain: Callable[[str, bytes], None] = store.write

    def together(name: str, data: bytes) -> None:
        meeting.wait(timeout=60)
        plain(name, data)

    monkeypatch.setattr(store, "write", together)
    writer = SegmentWriter(store, HOST, appends=False)
    with ThreadPoolExecutor(4) as pool:
        pieces = list(pool.map(lambda n: write_one(writer, numbered(n, 3)), range(4)))
    reader = SegmentReader(store)
    assert [reader.read(piece, NUMBERED).column("id")[0].as_py() for piece in pieces] == [0, 1, 2, 3]


# -- threads


def test_threads_that_write_at_the_same_time_get_what_they_wrote(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "ROLL_BYTES", 20_000)
    cache = BatchCache(50_000)
    writer, reader = SegmentWriter(store, HOST, appends=True, cache=cache), SegmentReader(store, cache)

    def work(thread: int) -> list[Slice]:
        pieces = []
        for turn in range(40):
            first = 1000 * thread + turn
            written = write(writer, {LaneId("a", thread): [numbered(first, 9)], B: [numbered(first, 2)]}, KEPT)
            for appended in written.appended:
                assert reader.read(appended.slice, NUMBERED).equals(numbered(first, appended.slice.rows))
                pieces.append(appended.slice)
            writer.release(written)
        return pieces

    with ThreadPoolExecutor(8) as pool:
        pieces = [piece for found in pool.map(work, range(8)) for piece in found]
    writer.close()
    assert len(pieces) == 8 * 40 * 2
    for name, size in segment_bytes(store).items():
        mine = sorted((p.offset, p.length) for p in pieces if p.segment == name)
        # Nothing overlaps, and nothing is between.
        assert [offset for offset, _ in mine] == [sum(length for _, length in mine[:n]) for n in range(len(mine))]
        assert sum(length for _, length in mine) == size
    ended = writer.ended()
    assert len(ended) == len(set(ended)) > 8
    assert set(ended) == set(segment_bytes(store))


# -- a full disk


def test_after_a_write_that_broke_off_the_next_goes_to_another_file(
    store: Store, writer: SegmentWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = write(writer, {A: [numbered(0, 5)]})
    plain = os.write
    for takes in (0, 10):
        monkeypatch.setattr(os, "write", lambda fd, data, takes=takes: plain(fd, bytes(data)[:takes]))
        with pytest.raises(OSError, match="No space left"):
            write(writer, {A: [numbered(5, 5)]})
        monkeypatch.undo()
    after = write_one(writer, numbered(10, 5))
    reader = SegmentReader(store)
    assert reader.read(before.appended[0].slice, NUMBERED).equals(numbered(0, 5))
    assert reader.read(after, NUMBERED).equals(numbered(10, 5))
    # Only the second has nothing that somebody may still name.
    assert writer.ended() == [f"{HOST}-000002.arrow"]
    writer.release(before)
    assert writer.ended() == [f"{HOST}-000001.arrow"]
    assert after.segment == f"{HOST}-000003.arrow"


@pytest.mark.parametrize("appends", [True, False])
def test_of_a_write_of_which_the_second_file_fails_no_file_stays_open_for_ever(
    store: Store, clock: Clock, appends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = SegmentWriter(store, HOST, appends=appends, clock=clock)
    plain: Callable[..., Any] = writer._current

    def no_room_apart(apart: bool) -> Any:
        if apart:
            raise OSError(28, "No space left on device")
        return plain(apart)

    monkeypatch.setattr(writer, "_current", no_room_apart)
    with pytest.raises(OSError, match="No space left"):
        write(writer, {A: [numbered(0, 5)], B: [numbered(5, 5)]}, KEPT)
    clock.now += ROLL_S
    write_one(writer, numbered(5, 5))
    assert f"{HOST}-000001.arrow" in writer.ended()


def test_a_file_that_cannot_be_begun_does_not_stop_the_next(
    store: Store, writer: SegmentWriter, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    write_one(writer, numbered(0, 5))
    clock.now += ROLL_S
    monkeypatch.setattr(os, "open", full)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            write(writer, {A: [numbered(5, 5)]})
    monkeypatch.undo()
    piece = write_one(writer, numbered(5, 5))
    assert SegmentReader(store).read(piece, NUMBERED).equals(numbered(5, 5))
    # The old one was ended once.
    assert writer.ended() == [f"{HOST}-000001.arrow"]


def test_a_writer_makes_the_folder_it_needs(tmp_path: Path) -> None:
    writer = SegmentWriter(Store(str(tmp_path / "not" / "yet")), HOST, appends=True)
    assert (tmp_path / "not" / "yet" / "segments" / write_one(writer, numbered(0, 1)).segment).exists()
