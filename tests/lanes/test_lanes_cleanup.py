"""Clean-up: the disk holds what waits, what hosts still write to, and a few seconds more."""

import numpy as np
import pytest
from lanes_on_disk import HOST, Clock, Scoring, numbered, write

from elastream.lanes import Appended, Entry, LaneId, LedgerState, Store
from elastream.lanes.cleanup import GRACE_S, SWEEP_S, SegmentCleanup
from elastream.lanes.entries import Reread
from elastream.lanes.segment_files import ROLL_S, SegmentWriter

A = LaneId("a", 0)
OTHER = "h0000000000b"


class Base:
    """A ledger's state, a host that writes whole files, and a clean-up whose clock is moved by hand."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = Clock()
        self.state = LedgerState()
        self.cleanup = SegmentCleanup(store, self.clock)
        self.cleanup.host_came(HOST)
        self.writers: dict[str, SegmentWriter] = {}
        self.in_use: set[str] = set()

    def written(self, prefix: str = HOST, rows: int = 4) -> Appended:
        writer = self.writers.setdefault(prefix, SegmentWriter(self.store, prefix, appends=False))
        return write(writer, {A: [numbered(0, rows)]}).appended[0]

    def commit(
        self, *appended: Appended, consumed: int = 0, ended: tuple[str, ...] = (), unused: tuple[str, ...] = ()
    ) -> list[str]:
        """One entry; gives what it freed. Tasks of the edge that began before it are over."""
        entry = Entry(self.state.entry + 1, 0.0, [("a", 0, consumed)] if consumed else [], list(appended))
        freed = self.state.apply(entry).freed
        self.cleanup.after_commit(self.state, [*freed, *unused], ended, self.state.entry + 1, self.in_use)
        return freed

    def later(self, seconds: float = GRACE_S) -> set[str]:
        """What there is after a commit some time later that does nothing."""
        self.clock.now += seconds
        self.commit()
        return self.files()

    def files(self) -> set[str]:
        return set(self.store.sizes("segments"))


@pytest.fixture
def base(store: Store) -> Base:
    return Base(store)


def test_the_disk_holds_what_waits_and_a_few_seconds_more(store: Store) -> None:
    clock, random = Clock(), np.random.default_rng(7)
    driver = Scoring(store, clock=clock)
    most = 0
    for tick in range(300):
        clock.now += 0.5
        waits = len(driver.state.queue(LaneId("score", 0)))
        # Mostly as much goes as comes, now and then a backlog builds up and is worked off.
        scored = min(int(random.integers(0, 20)) if tick < 250 else 10**6, waits)
        number = driver.state.entry + 1
        driver.tick(entering=10, scored=scored)
        # Somebody reads the output at once.
        driver.commit(Entry(number + 1, 0.0, [("table", 0, 2 * scored)] if scored else []))
        files = set(store.sizes("segments"))
        assert driver.state.segments() <= files
        most = max(most, len(files - driver.state.segments()))
    # Two files are begun every two seconds, and each outlives its tuples by the grace, or until the next is begun.
    assert most <= 2 * (GRACE_S + 2 * ROLL_S) / ROLL_S + 2
    assert len(driver.state.segments()) <= 2


def test_a_consumed_segment_stays_for_the_grace_and_then_goes(base: Base) -> None:
    piece = base.written()
    name = piece.slice.segment
    base.commit(piece, ended=(name,))
    assert base.later(10 * GRACE_S) == {name}
    assert base.commit(consumed=4) == [name]
    assert base.later(GRACE_S - 0.1) == {name}
    assert base.later(0.1) == set()


def test_a_file_that_a_work_under_way_reads_stays_until_its_receipt(base: Base) -> None:
    piece = base.written()
    name = piece.slice.segment
    base.commit(piece, ended=(name,))
    base.in_use.add(name)
    assert base.commit(consumed=4) == [name]
    assert base.later(10 * GRACE_S) == {name}
    assert base.later(2 * SWEEP_S) == {name}, "nor does the sweep take it"
    base.in_use.clear()
    assert base.later() == set()


def test_a_file_that_a_live_host_may_still_write_to_stays(base: Base) -> None:
    piece = base.written()
    name = piece.slice.segment
    base.commit(piece)
    base.commit(consumed=4)
    assert base.later(10 * GRACE_S) == {name}
    assert base.later(2 * SWEEP_S) == {name}
    # When its host has ended it, nothing will be added to it any more.
    base.commit(ended=(name,))
    assert base.files() == {name}
    assert base.later() == set()
    assert not (base.cleanup._idle or base.cleanup._ended or base.cleanup._going)


def test_a_file_that_was_worked_off_and_is_written_to_again_waits_again(base: Base) -> None:
    first = base.written()
    name = first.slice.segment
    base.commit(first)
    base.commit(consumed=4)
    base.commit(first._replace(slice=first.slice._replace(offset=4096)))
    base.commit(ended=(name,))
    assert base.later(10 * GRACE_S) == {name}
    base.commit(consumed=4)
    assert base.later() == set()
    assert not (base.cleanup._idle or base.cleanup._ended or base.cleanup._going)


def test_a_file_that_is_named_again_during_its_grace_stays(base: Base) -> None:
    piece = base.written(OTHER)
    base.commit(piece)
    assert base.commit(consumed=4) == [piece.slice.segment]
    base.commit(piece)
    assert base.later() == {piece.slice.segment}
    base.commit(consumed=4)
    assert base.later() == set()


def test_a_file_that_is_freed_and_ended_at_once_goes_and_is_forgotten(base: Base) -> None:
    for _ in range(3):
        piece = base.written()
        base.commit(piece)
        base.commit(consumed=4, ended=(piece.slice.segment,))
    assert base.later() == set()
    assert not (base.cleanup._idle or base.cleanup._ended or base.cleanup._going)


def test_a_file_of_which_more_waits_than_was_dropped_goes_when_that_is_gone(base: Base) -> None:
    piece = base.written()
    name = piece.slice.segment
    base.commit(piece, ended=(name,))
    # Some of its tuples found their lane full; others of it wait.
    base.commit(unused=(name,))
    assert base.later(10 * GRACE_S) == {name}
    base.commit(consumed=4)
    assert base.later() == set()


def test_a_file_of_which_nothing_was_ever_named_goes_when_it_is_ended(base: Base) -> None:
    name = base.written().slice.segment
    assert base.later(10 * GRACE_S) == {name}
    base.commit(ended=(name,))
    assert base.later(GRACE_S - 0.1) == {name}
    assert base.later(0.1) == set()


def test_what_a_host_leaves_behind_goes_but_not_what_waits(base: Base) -> None:
    waits, idle, ended, never = (base.written() for _ in range(4))
    base.commit(idle)
    base.commit(waits, ended, consumed=4, ended=(ended.slice.segment,))
    base.cleanup.host_went(HOST)
    assert base.later() == {piece.slice.segment for piece in (waits, ended, never)}
    # The one that was never named is found when all files are looked at.
    assert base.later(SWEEP_S) == {waits.slice.segment, ended.slice.segment}
    base.commit(consumed=8)
    assert base.later() == set()
    assert not (base.cleanup._idle or base.cleanup._ended or base.cleanup._going)


def test_another_hosts_end_changes_nothing(base: Base) -> None:
    base.cleanup.host_came(OTHER)
    mine = base.written()
    base.commit(mine)
    base.commit(consumed=4)
    base.cleanup.host_went(OTHER)
    assert base.later(2 * SWEEP_S) == {mine.slice.segment}


# -- looking at all files


def test_the_sweep_spares_live_hosts_and_tasks_of_the_edge_that_may_still_run(base: Base) -> None:
    named, live, dead = base.written(), base.written(), base.written(OTHER)
    over, runs = base.written("000000000004-aaaa"), base.written("000000000005-bbbb")
    base.commit(named)
    assert base.cleanup.sweep(base.state, spare_from=5) == 2
    assert base.files() == {piece.slice.segment for piece in (named, live, runs)}
    assert {dead.slice.segment, over.slice.segment} & base.files() == set()
    assert base.cleanup.sweep(base.state, spare_from=6) == 1
    assert base.files() == {named.slice.segment, live.slice.segment}


def test_the_sweep_leaves_the_grace_to_those_that_have_it(base: Base) -> None:
    piece = base.written(OTHER)
    base.commit(piece)
    base.commit(consumed=4)
    assert base.cleanup.sweep(base.state, spare_from=0) == 0
    assert base.files() == {piece.slice.segment}
    # After a restart nobody remembers it.
    assert SegmentCleanup(base.store, base.clock).sweep(base.state, spare_from=0) == 1


def test_the_sweep_comes_now_and_then_by_itself(base: Base) -> None:
    orphan = base.written(OTHER).slice.segment
    assert base.later(SWEEP_S - 0.1) == {orphan}
    assert base.later(0.1) == set()
    again = base.written(OTHER).slice.segment
    assert base.later(SWEEP_S - 0.1) == {again}
    assert base.later(0.1) == set()


def test_the_sweep_leaves_what_a_dataframe_operator_may_read_again(base: Base) -> None:
    piece = base.written(OTHER)
    base.commit(piece)
    again = Reread(0, "a", 0, 0, 0.0, None, [piece.slice])
    freed = base.state.apply(Entry(1, 0.0, [("a", 0, 4)], reread=[again])).freed
    assert freed == []
    assert SegmentCleanup(base.store, base.clock).sweep(base.state, spare_from=0) == 0
    freed = base.state.apply(Entry(2, 0.0, reread=[])).freed
    assert freed == [piece.slice.segment]
    assert SegmentCleanup(base.store, base.clock).sweep(base.state, spare_from=0) == 1


@pytest.mark.parametrize("name", [".nfs000000000123", ".DS_Store", "notes.txt", "x.arrow.unfinished"])
def test_the_sweep_leaves_files_alone_that_are_not_segments(base: Base, name: str) -> None:
    # Shared disks and file browsers put such files everywhere.
    orphan = base.written(OTHER)
    foreign = base.store.local_path / "segments" / name
    foreign.write_bytes(b"")
    assert base.cleanup.sweep(base.state, spare_from=0) == 1
    assert orphan.slice.segment not in base.files()
    assert foreign.exists()


def test_what_a_writer_that_is_gone_left_half_written_goes_with_the_sweep(store: Store) -> None:
    cleanup = SegmentCleanup(store)
    cleanup.host_came("hlive")
    folder = store.local_path / "segments"
    folder.mkdir(parents=True)
    names = ("hlive-000001.arrow.unfinished", "hgone-000001.arrow.unfinished", "000000000007-1.arrow.unfinished")
    for name in names:
        (folder / name).write_bytes(b"half")
    assert cleanup.sweep(LedgerState(), spare_from=7) == 1
    assert sorted(path.name for path in folder.iterdir()) == sorted([names[0], names[2]])


def test_a_segment_that_cannot_be_removed_now_is_removed_later(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    piece = base.written()
    base.commit(piece)
    base.commit(consumed=4, ended=(piece.slice.segment,))

    def fails(names: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(base.store, "delete", fails)
        assert base.later() == {piece.slice.segment}
    assert base.later() == set()
