"""Clean-up: the disk holds what waits and a few ticks more."""

from pathlib import Path

import numpy as np
from lanes_on_disk import numbered

from elastream.lanes import Appended, Book, Cleanup, Entry, LaneId, Store
from elastream.lanes.cleanup import GRACE_TICKS
from elastream.lanes.segments import write_segments


def test_the_disk_holds_what_waits_and_a_few_ticks_more(store: Store) -> None:
    book, cleanup, random = Book(), Cleanup(store), np.random.default_rng(7)
    lane, freed_at = LaneId("a", 0), list[list[str]]()
    for tick in range(120):
        appended: list[Appended] = []
        for task in range(3):
            made, _ = write_segments(store, tick, {lane: [numbered(tick * 30 + task * 10, 10)]})
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
    appended, _ = write_segments(store, 0, {LaneId("a", 0): [numbered(0, 4)]})
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
        return write_segments(store, tick, {LaneId("a", 0): [numbered(0, 4)]})[0][0]

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
    consumed = write_segments(store, 0, {LaneId("a", 0): [numbered(0, 4)]})[0][0]
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
    orphan, _ = write_segments(store, 0, {LaneId("a", 0): [numbered(0, 4)]})
    book = Book()
    book.apply(Entry(0, "run", 0, 0.0))
    # Shared disks and file browsers put such files everywhere.
    for name in (".nfs000000000123", ".DS_Store"):
        (tmp_path / "base" / "segments" / name).write_bytes(b"")
    assert Cleanup(store).sweep(book) == len(orphan) == 1
    assert set(store.sizes("segments")) == {".nfs000000000123", ".DS_Store"}
