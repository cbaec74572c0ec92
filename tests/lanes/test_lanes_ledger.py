"""The ledger: loaded as it was committed, across restarts and damage, and what a commit costs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from lanes_on_disk import Committing, entry_of, flip_byte, slice_of, told

from elastream.errors import Damaged
from elastream.lanes import Appended, Entry, LaneId, Ledger, LedgerState, Store
from elastream.lanes import ledger as ledger_module
from elastream.lanes.records import MAGIC, pack


@pytest.fixture
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new log after a few entries, not after megabytes."""
    monkeypatch.setattr(ledger_module, "LEAST_BYTES", 1500)


def _logs(store: Store) -> list[Path]:
    return sorted((store.local_path / "ledger").glob("*.log"))


def test_a_new_base_gives_an_empty_state(store: Store) -> None:
    assert told(Ledger(store).load()) == told(LedgerState())


@pytest.mark.parametrize("entries", [0, 1, 5, 250])
@pytest.mark.usefixtures("short_logs")
def test_loading_gives_the_state_as_of_the_last_commit(store: Store, entries: int) -> None:
    driver = Committing(store).run(entries)
    loaded = Ledger(store).load()
    assert loaded.entry == entries - 1
    assert told(loaded) == told(driver.state)


@pytest.mark.usefixtures("short_logs")
def test_a_ledger_goes_on_after_every_restart(store: Store) -> None:
    state = LedgerState()
    for entries in (3, 70, 0, 1, 130, 0, 0, 64, 20):
        driver = Committing(store)
        assert told(driver.state) == told(state)
        state = driver.run(entries).state
        driver.ledger.close()
    assert state.entry == 287
    assert told(Ledger(store).load()) == told(state)


@pytest.mark.usefixtures("short_logs")
def test_the_ledger_does_not_grow_with_the_number_of_commits(store: Store) -> None:
    driver = Committing(store)
    sizes = []
    for _ in range(60):
        # As much goes as comes.
        for number in range(driver.state.entry + 1, driver.state.entry + 11):
            driver.commit(entry_of(number, appended=1, consumed=3 if number > 1 else 0))
        assert len(_logs(store)) <= 2
        sizes.append(sum(store.sizes("ledger").values()))
    assert driver.state.entry == 599
    assert max(sizes[30:]) <= 1.2 * max(sizes[:30])


def test_entries_that_are_kept_can_be_read_one_by_one(store: Store) -> None:
    Committing(store).run(5)
    Committing(store).run(2)
    found = list(Ledger(store).entries())
    assert [entry.number for entry in found] == list(range(7))
    assert found[3].sources == {"read": {"next": 30, "origin_s": 5.5}}
    assert found[3] == entry_of(3, consumed=5)


def test_nothing_is_committed_before_the_driver_has_taken_over_or_after_it_let_go(store: Store) -> None:
    with pytest.raises(ValueError, match=r"call begin\(\) before commit\(\)"):
        Ledger(store).commit(entry_of(0))
    driver = Committing(store)
    driver.ledger.close()
    with pytest.raises(ValueError, match="closed"):
        driver.ledger.commit(entry_of(0))
    assert Ledger(store).load().entry == -1


# -- a driver that dies


def _ends(store: Store, entries: int) -> list[int]:
    """How long the log is after each of so many commits, from none on."""
    driver = Committing(store)
    (log,) = _logs(store)
    ends = [log.stat().st_size]
    for number in range(entries):
        driver.commit(entry_of(number))
        ends.append(log.stat().st_size)
    driver.ledger.close()
    return ends


@pytest.mark.parametrize("left_behind", [0, 1, 5000], ids=["nothing", "a zero", "zeros"])
def test_a_record_that_is_cut_off_at_any_byte_did_not_happen(store: Store, left_behind: int) -> None:
    ends = _ends(store, 3)
    (log,) = _logs(store)
    whole = log.read_bytes()
    wrong = []
    for length in range(ends[0], len(whole) + 1):
        # A file system may have made the file longer before it wrote the bytes.
        log.write_bytes(whole[:length] + bytes(left_behind))
        expected = sum(end <= length for end in ends) - 2
        if (found := Ledger(store).load().entry) != expected:
            wrong.append((length, expected, found))
    assert wrong == []


def test_a_driver_goes_on_behind_a_record_that_was_cut_off(store: Store) -> None:
    ends = _ends(store, 3)
    (log,) = _logs(store)
    log.write_bytes(log.read_bytes()[: ends[-1] - 2])
    driver = Committing(store)
    assert driver.state.entry == 1
    again = entry_of(2, appended=5)
    driver.commit(again)
    assert list(Ledger(store).entries())[-1] == again
    assert told(Ledger(store).load()) == told(driver.state)


class FullDisk:
    """A log that takes only so many bytes of the next record."""

    def __init__(self, takes: int, says_so: bool) -> None:
        self._write, self._takes, self._says_so = os.write, takes, says_so

    def write(self, descriptor: int, data: bytes) -> int:
        written = self._write(descriptor, data[: self._takes])
        if self._says_so:
            raise OSError(28, "No space left on device")
        return written


@pytest.mark.parametrize("says_so", [True, False])
@pytest.mark.parametrize("takes", [0, 5, 40])
def test_a_full_disk_leaves_no_half_record_in_front_of_the_next(
    store: Store, takes: int, says_so: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Committing(store).run(3)
    (log,) = _logs(store)
    before = log.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", FullDisk(takes, says_so).write)
        with pytest.raises(OSError, match="No space left"):
            driver.ledger.commit(entry_of(3))
    assert log.read_bytes() == before
    driver.run(2)
    assert told(Ledger(store).load()) == told(driver.state)


def test_when_not_even_the_half_record_can_be_removed_nothing_is_written_behind_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(5, "Input/output error")

    driver = Committing(store).run(3)
    monkeypatch.setattr(os, "write", FullDisk(20, True).write)
    monkeypatch.setattr(os, "ftruncate", fails)
    with pytest.raises(OSError, match="No space left"):
        driver.ledger.commit(entry_of(3))
    with pytest.raises(ValueError, match="closed"):
        driver.ledger.commit(entry_of(3))
    assert told(Ledger(store).load()) == told(driver.state)


# -- damage


def test_a_turned_byte_anywhere_is_seen_and_named_and_can_be_mended(store: Store) -> None:
    driver = Committing(store).run(4)
    (log,) = _logs(store)
    whole = log.read_bytes()
    believed = []
    for at in range(len(whole)):
        flip_byte(log, at)
        try:
            believed.append((at, Ledger(store).load().entry))
        except Damaged as error:
            assert str(error).startswith(f"{store}/ledger/{log.name}: ")
            assert "restore the file from a copy" in str(error)
        log.write_bytes(whole)
    assert believed == []
    assert told(Ledger(store).load()) == told(driver.state)


def _damage_snapshot(log: Path) -> bytes:
    return flip_byte(log, len(MAGIC) + 40)


@pytest.mark.usefixtures("short_logs")
def test_a_damaged_snapshot_falls_back_to_the_log_before(store: Store) -> None:
    driver = Committing(store).run(100)
    before = _logs(store)
    while _logs(store) == before:
        driver.run(1)
    driver.run(3)
    older, newest = _logs(store)
    whole = _damage_snapshot(newest)
    # The three entries behind it are applied too.
    assert told(Ledger(store).load()) == told(driver.state)
    newest.write_bytes(whole)
    _damage_snapshot(older)
    assert told(Ledger(store).load()) == told(driver.state)


@pytest.mark.usefixtures("short_logs")
def test_when_both_snapshots_are_damaged_the_newest_is_named(store: Store) -> None:
    driver = Committing(store).run(100)
    older, newest = _logs(store)
    whole = _damage_snapshot(older)
    _damage_snapshot(newest)
    with pytest.raises(Damaged, match=newest.name):
        Ledger(store).load()
    older.write_bytes(whole)
    assert told(Ledger(store).load()) == told(driver.state)


def test_when_the_log_before_has_lost_entries_the_damaged_snapshot_is_named(store: Store) -> None:
    ends = _ends(store, 3)
    driver = Committing(store)
    older, newest = _logs(store)
    whole = older.read_bytes()
    older.write_bytes(whole[: ends[2]])
    snapshot = _damage_snapshot(newest)
    # No entry is behind it that would tell of the gap.
    with pytest.raises(Damaged, match=newest.name):
        Ledger(store).load()
    newest.write_bytes(snapshot)
    assert told(Ledger(store).load()) == told(driver.state)


@pytest.mark.usefixtures("short_logs")
def test_after_a_fall_back_the_damaged_snapshot_is_not_the_one_that_is_kept(store: Store) -> None:
    Committing(store).run(100)
    _damage_snapshot(_logs(store)[-1])
    driver = Committing(store)
    # One more damage, and there must still be a snapshot to begin from.
    _damage_snapshot(_logs(store)[-1])
    assert told(Ledger(store).load()) == told(driver.state)
    # When there are two whole ones again, the others go.
    driver = Committing(store).run(100)
    assert len(_logs(store)) == 2
    _damage_snapshot(_logs(store)[-1])
    assert told(Ledger(store).load()) == told(driver.state)


@pytest.mark.parametrize("name", ["{}.bak", "copy of {}", "{}.unfinished", "{}.0123.unfinished", "1-2.log"])
def test_a_file_with_another_name_is_not_taken_for_a_log(store: Store, name: str) -> None:
    driver = Committing(store).run(10)
    (log,) = _logs(store)
    log.with_name(name.format(log.name)).write_bytes(MAGIC + b"half")
    assert told(Ledger(store).load()) == told(driver.state)
    assert told(Committing(store).run(2).state) == told(Ledger(store).load())


@pytest.mark.parametrize("name", ["entry-000000000000.json", "book-000000000063.json"])
def test_a_base_of_the_first_edition_is_refused_with_one_line(store: Store, name: str) -> None:
    store.write(f"ledger/{name}", b'{"format": "elastream-entry", "version": 1}\n{}\n')
    with pytest.raises(Damaged) as caught:
        Ledger(store).load()
    assert str(caught.value).startswith(f"base {store}: was written by Elastream 0.1")
    assert "begin with a new base" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_log_of_another_version_is_refused(store: Store) -> None:
    Committing(store).run(2)
    (log,) = _logs(store)
    log.write_bytes(log.read_bytes().replace(b"elastream-ledger 2", b"elastream-ledger 3", 1))
    with pytest.raises(Damaged, match=f"{log.name}: not a ledger of this version"):
        Ledger(store).load()


# -- what a commit costs


def _waiting(store: Store, pending: int) -> Committing:
    driver = Committing(store)
    driver.commit(Entry(0, 0.0, appended=[Appended("a", 0, slice_of("0-x.arrow", n, 1)) for n in range(pending)]))
    return driver


def _one_in_one_out(number: int) -> Entry:
    return Entry(number, 0.0, [("a", 0, 1)], [Appended("a", 0, slice_of(f"{number:012d}-x.arrow", 0, 1))])


def test_a_commit_writes_what_the_tick_did_and_not_what_waits(tmp_path: Path) -> None:
    grown = {}
    for pending in (10, 20_000):
        driver = _waiting(Store(str(tmp_path / str(pending))), pending)
        (log,) = _logs(driver.store)
        before = log.stat().st_size
        for number in range(1, 51):
            driver.commit(_one_in_one_out(number))
        assert len(driver.state.queue(LaneId("a", 0))) == pending
        grown[pending] = log.stat().st_size - before
    assert grown[10] == grown[20_000]


@pytest.mark.usefixtures("short_logs")
def test_snapshots_cost_less_than_the_entries_between_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots: list[int] = []
    write_new: Callable[[str, bytes], bool] = store.write_new

    def counted(name: str, data: bytes) -> bool:
        snapshots.append(len(data))
        return write_new(name, data)

    monkeypatch.setattr(store, "write_new", counted)
    driver = _waiting(store, 500)
    entries = 0
    for number in range(1, 2001):
        driver.commit(_one_in_one_out(number))
        entries += len(pack(ledger_module._encode(_one_in_one_out(number))))
    assert len(snapshots) >= 4
    # But for the last, of which only some entries were made.
    assert sum(snapshots[2:-1]) <= entries / 2
