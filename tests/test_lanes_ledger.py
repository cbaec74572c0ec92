"""The ledger: loaded as it was committed, across restarts and damage, and what a commit costs."""

import json
import statistics
import time
from pathlib import Path
from typing import Any

import pytest
from lanes_on_disk import as_json, flip_byte, numbered, slice_of

from elastream.errors import Damaged
from elastream.lanes import Appended, Book, Entry, LaneId, Ledger, SchemaId, Store
from elastream.lanes.ledger import ENTRIES_A_SNAPSHOT
from elastream.lanes.segments import write_segments


def _entry(tick: int, appended: int = 1, consumed: int = 0, **more: Any) -> Entry:
    return Entry(
        tick,
        "run-1",
        tick - 1,
        1000.0 + tick,
        (("a", tick % 2, consumed),) if consumed else (),
        tuple(Appended("a", (tick + n) % 2, slice_of(f"{tick:012d}-x.arrow", 64 * n, 3)) for n in range(appended)),
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
    assert as_json(Ledger(store).load()) == as_json(Book())


@pytest.mark.parametrize("ticks", [1, 5, ENTRIES_A_SNAPSHOT, ENTRIES_A_SNAPSHOT + 1, 250])
def test_loading_gives_the_book_as_of_the_last_commit(store: Store, ticks: int) -> None:
    _, book = _run(store, ticks)
    loaded = Ledger(store).load()
    assert as_json(loaded) == as_json(book)
    assert loaded.segments() == book.segments()
    assert loaded.tick == ticks - 1


def test_a_ledger_goes_on_after_every_restart(store: Store) -> None:
    book = Book()
    for ticks in (3, 70, 1, 130, 64, 20):
        ledger = Ledger(store)
        loaded = ledger.load()
        assert as_json(loaded) == as_json(book)
        ledger, book = _run(store, ticks, ledger, loaded)
    assert book.tick == 287
    assert as_json(Ledger(store).load()) == as_json(book)


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
    assert as_json(Ledger(store).load()) == as_json(book)


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
    whole = flip_byte(path, place if place >= 0 else len(path.read_bytes()) + place - 1)
    with pytest.raises(Damaged) as caught:
        Ledger(store).load()
    assert f"{store}/ledger/entry-000000000004.json" in str(caught.value)
    path.write_bytes(whole)
    assert as_json(Ledger(store).load()) == as_json(book)


def test_a_damaged_snapshot_falls_back_to_the_one_before(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, 250)
    older, newest = _names(store, "book-")
    path = tmp_path / "base" / "ledger" / newest
    flip_byte(path, 200)
    assert as_json(Ledger(store).load()) == as_json(book)
    path.unlink()
    assert as_json(Ledger(store).load()) == as_json(book)
    assert older < newest


def test_the_only_snapshot_may_be_damaged_while_all_entries_are_there(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, ENTRIES_A_SNAPSHOT + 5)
    (only,) = _names(store, "book-")
    flip_byte(tmp_path / "base" / "ledger" / only, 200)
    assert as_json(Ledger(store).load()) == as_json(book)


def test_when_both_snapshots_are_damaged_the_newest_is_named(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, 250)
    paths = [tmp_path / "base" / "ledger" / name for name in _names(store, "book-")]
    wholes = [flip_byte(path, 200) for path in paths]
    with pytest.raises(Damaged, match=paths[-1].name):
        Ledger(store).load()
    paths[0].write_bytes(wholes[0])
    assert as_json(Ledger(store).load()) == as_json(book)


def test_after_a_fall_back_the_damaged_snapshot_is_not_the_one_that_is_kept(store: Store, tmp_path: Path) -> None:
    _run(store, 250)
    folder = tmp_path / "base" / "ledger"
    flip_byte(folder / _names(store, "book-")[-1], 200)
    ledger = Ledger(store)
    book = ledger.load()
    before = _names(store, "book-")
    while _names(store, "book-") == before:
        ledger, book = _run(store, 1, ledger, book)
    # One more damage, and there must still be a snapshot to begin from.
    flip_byte(folder / _names(store, "book-")[-1], 200)
    assert as_json(Ledger(store).load()) == as_json(book)


def test_an_unfinished_file_is_ignored_and_removed(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, 5)
    write_segments(store, 5, {LaneId("a", 0): [numbered(0, 3)]})
    folder = tmp_path / "base" / "ledger"
    (folder / "entry-000000000005.json.unfinished").write_bytes(b'{"format": "elastr')
    (tmp_path / "base" / "segments" / "000000000005-half.arrow.unfinished").write_bytes(b"ARROW1")
    assert as_json(Ledger(store).load()) == as_json(book)
    assert "entry-000000000005.json.unfinished" not in store.sizes("ledger")
    for name in ("ledger", "segments", "never-made"):
        store.remove_unfinished(name)
    assert not list((tmp_path / "base").rglob("*.unfinished"))
    assert len(store.sizes("segments")) == 1
    assert as_json(Ledger(store).load()) == as_json(book)


def test_a_copy_that_someone_made_of_an_entry_is_not_taken_for_the_entry(store: Store, tmp_path: Path) -> None:
    _, book = _run(store, 10)
    path = tmp_path / "base" / "ledger" / "entry-000000000006.json"
    copy = path.with_name(path.name + ".bak")
    copy.write_bytes(path.read_bytes())
    assert as_json(Ledger(store).load()) == as_json(book)
    path.unlink()
    with pytest.raises(Damaged, match="entry 6 is missing"):
        Ledger(store).load()


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
            (Appended("a", 0, slice_of(f"{tick:012d}-x.arrow", 0, 1)),),
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
            Entry(0, "run", 0, 0.0, (), tuple(Appended("a", 0, slice_of("0-x.arrow", n, 1)) for n in range(pending)))
        )
        runs[pending] = store, ledger, book
    best = dict.fromkeys(runs, float("inf"))
    # Turn by turn, and the best of them: what else the machine does falls on both.
    for _ in range(8):
        for pending, run in runs.items():
            best[pending] = min(best[pending], _commit_seconds(*run, ticks=15))
    assert len(runs[100_000][2].queue(LaneId("a", 0))) == 100_000
    assert best[100_000] <= 3 * best[10]
