"""Following a ledger while a driver writes it."""

import shutil
import threading
from collections import Counter
from pathlib import Path

import pytest
from lanes_on_disk import Committing, entry_of, flip_byte, told

from elastream.errors import Damaged
from elastream.lanes import LaneId, LedgerState, Store
from elastream.lanes import ledger as ledger_module
from elastream.lanes.ledger import LedgerReader
from elastream.lanes.records import MAGIC


@pytest.fixture
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "LEAST_BYTES", 1500)


class Watched(Store):
    """A store that counts the bytes that are read, and lets something happen before a file is."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.bytes_read = 0
        self.before_reads: list[Committing] = []
        self.entries = 0

    def read(self, name: str) -> bytes:
        self._happen()
        data = super().read(name)
        self.bytes_read += len(data)
        return data

    def read_from(self, name: str, offset: int) -> bytes:
        self._happen()
        data = super().read_from(name, offset)
        self.bytes_read += len(data)
        return data

    def _happen(self) -> None:
        drivers, self.before_reads = self.before_reads, []
        for driver in drivers:
            driver.run(self.entries)


def _newest(store: Store) -> Path:
    return sorted((store.local_path / "ledger").glob("*.log"))[-1]


def test_a_base_that_has_not_begun_is_empty_and_is_seen_when_it_begins(store: Store) -> None:
    reader = LedgerReader(store)
    assert told(reader.refresh()) == told(LedgerState())
    driver = Committing(store)
    assert told(reader.refresh()) == told(LedgerState())
    driver.run(1)
    assert told(reader.refresh()) == told(driver.state)
    assert reader.state.entry == 0


@pytest.mark.usefixtures("short_logs")
def test_every_commit_is_seen_over_new_logs_and_new_drivers(store: Store) -> None:
    driver, reader = Committing(store), LedgerReader(store)
    logs = set()
    for step in range(150):
        if step % 40 == 39:
            driver = Committing(store)
        driver.run(1)
        assert told(reader.refresh()) == told(driver.state)
        assert told(reader.refresh()) == told(driver.state)
        logs.add(_newest(store).name)
    assert len(logs) > 8


@pytest.mark.usefixtures("short_logs")
def test_a_reader_that_slept_finds_its_way_after_old_logs_were_removed(store: Store) -> None:
    driver = Committing(store).run(5)
    reader = LedgerReader(store)
    reader.refresh()
    read = _newest(store)
    driver.run(200)
    assert not read.exists()
    assert told(reader.refresh()) == told(driver.state)


def test_only_what_is_new_is_read(store: Store) -> None:
    driver = Committing(store).run(500)
    watched = Watched(store.uri)
    reader = LedgerReader(watched)
    reader.refresh()
    assert watched.bytes_read == _newest(store).stat().st_size
    before = watched.bytes_read
    for _ in range(3):
        size = _newest(store).stat().st_size
        driver.run(1)
        reader.refresh()
        assert watched.bytes_read - before == _newest(store).stat().st_size - size
        before = watched.bytes_read
    reader.refresh()
    assert watched.bytes_read == before


def test_a_record_of_which_a_part_is_there_is_seen_when_all_of_it_is(store: Store) -> None:
    driver, reader = Committing(store).run(3), LedgerReader(store)
    log = _newest(store)
    driver.run(1)
    whole = log.read_bytes()
    seen = Counter[int]()
    for length in range(len(whole) - 30, len(whole) + 1):
        log.write_bytes(whole[:length])
        seen[reader.refresh().entry] += 1
    assert seen == {2: 30, 3: 1}
    assert told(reader.state) == told(driver.state)


@pytest.mark.usefixtures("short_logs")
@pytest.mark.parametrize("known", [True, False], ids=["followed", "new"])
def test_a_log_that_is_removed_just_before_it_is_read_does_no_harm(store: Store, known: bool) -> None:
    driver, watched = Committing(store).run(5), Watched(store.uri)
    reader = LedgerReader(watched)
    if known:
        reader.refresh()
    read = _newest(store)
    watched.before_reads, watched.entries = [driver], 200
    assert told(reader.refresh()) == told(driver.state)
    assert not read.exists()
    assert driver.state.entry == 204


def test_what_is_appended_after_a_take_over_is_not_believed_by_one_who_did_not_know_of_it(store: Store) -> None:
    old, watched = Committing(store).run(5), Watched(store.uri)
    reader = LedgerReader(watched)
    reader.refresh()
    taken_over: list[Committing] = []

    class TakeOver:
        def run(self, entries: int) -> None:
            taken_over.append(Committing(store))
            old.run(entries)

    # Between the look at which log is the newest and its reading.
    watched.before_reads, watched.entries = [TakeOver()], 3  # type: ignore[list-item]
    assert reader.refresh().entry == 4
    assert told(reader.state) == told(taken_over[0].state)
    assert old.state.entry == 7


@pytest.mark.usefixtures("short_logs")
def test_a_damaged_snapshot_is_got_over_as_a_driver_would(store: Store) -> None:
    driver = Committing(store).run(100)
    reader = LedgerReader(store)
    flip_byte(_newest(store), len(MAGIC) + 40)
    assert told(reader.refresh()) == told(driver.state)
    driver.run(2)
    assert told(reader.refresh()) == told(driver.state)


def test_a_damaged_entry_is_named_and_followed_again_when_it_was_mended(store: Store) -> None:
    driver, reader = Committing(store).run(3), LedgerReader(store)
    reader.refresh()
    log = _newest(store)
    driver.run(1)
    at = log.stat().st_size + 30
    driver.run(2)
    whole = flip_byte(log, at)
    for _ in range(2):
        with pytest.raises(Damaged, match=f"{log.name}: the record at byte {at - 30} "):
            reader.refresh()
    log.write_bytes(whole)
    assert told(reader.refresh()) == told(driver.state)


def test_a_base_of_the_first_edition_is_refused(store: Store) -> None:
    store.write("ledger/entry-000000000000.json", b"{}")
    with pytest.raises(Damaged, match=r"was written by Elastream 0\.1"):
        LedgerReader(store).refresh()


@pytest.mark.usefixtures("short_logs")
def test_every_state_that_a_reader_sees_is_one_that_was_committed(store: Store) -> None:
    # After entry n, 6 (n + 1) tuples have come and 3 n have gone.
    driver, over = Committing(store), threading.Event()

    def commit() -> None:
        try:
            for number in range(1500):
                driver.commit(entry_of(number, consumed=3 if number else 0))
        finally:
            over.set()

    writer = threading.Thread(target=commit)
    writer.start()
    reader, wrong, last = LedgerReader(store), list[str](), -1
    try:
        while not over.is_set():
            state = reader.refresh()
            lanes = [state.queue(LaneId("a", n)) for n in range(2)]
            came, went = sum(lane.appended for lane in lanes), sum(lane.consumed for lane in lanes)
            if came != 6 * (state.entry + 1) or went != 3 * max(0, state.entry) or state.entry < last:
                wrong.append(f"{came} came and {went} went after {state.entry}, which came after {last}")
            last = state.entry
    finally:
        writer.join()
    assert wrong == []
    assert reader.refresh().entry == 1499
    assert told(reader.state) == told(driver.state)


def test_a_base_that_was_begun_anew_is_read_from_its_beginning(store: Store) -> None:
    reader = LedgerReader(store)
    Committing(store).run(3)
    reader.refresh()
    shutil.rmtree(store.local_path)
    anew = Committing(Store(str(store.local_path)))
    # The log has the old one's name, and where the reader was is the middle of an entry.
    anew.commit(entry_of(0, query="x" * 4000))
    assert told(reader.refresh()) == told(anew.state)
