"""Epochs: a driver that was cut off goes on writing, and nothing of it is ever read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from lanes_on_disk import Committing, entry_of, flip_byte, told

from elastream.errors import BaseInUse
from elastream.lanes import Ledger, Store
from elastream.lanes import ledger as ledger_module
from elastream.lanes.ledger import LedgerReader
from elastream.lanes.ledger_files import Span, spans
from elastream.lanes.records import MAGIC


def _logs(store: Store) -> list[Path]:
    return sorted((store.local_path / "ledger").glob("*.log"))


def test_each_start_begins_an_epoch(store: Store) -> None:
    for _ in range(3):
        Committing(store).run(2)
    assert [log.name for log in _logs(store)] == ["00000002-000000000002.log", "00000003-000000000004.log"]


def test_what_a_driver_that_was_cut_off_appends_is_never_read(store: Store) -> None:
    old = Committing(store).run(5)
    new = Committing(store)
    for number in range(5, 12):
        old.ledger.commit(entry_of(number, appended=7))
    assert told(Ledger(store).load()) == told(new.state)
    new.run(3)
    assert told(Ledger(store).load()) == told(new.state)
    assert told(LedgerReader(store).refresh()) == told(new.state)
    assert [(entry.number, len(entry.appended)) for entry in Ledger(store).entries()] == [(n, 2) for n in range(8)]
    assert told(Committing(store).state) == told(new.state)


def test_it_is_not_read_when_the_newest_snapshot_is_damaged_either(store: Store) -> None:
    old = Committing(store).run(5)
    new = Committing(store)
    for number in range(5, 12):
        old.ledger.commit(entry_of(number, appended=7))
    new.run(3)
    flip_byte(_logs(store)[-1], len(MAGIC) + 40)
    assert told(Ledger(store).load()) == told(new.state)
    assert told(LedgerReader(store).refresh()) == told(new.state)


def test_a_log_that_a_driver_that_was_cut_off_has_begun_is_not_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Committing(store).run(5)
    new = Committing(store)
    # It had looked for others just before they came.
    monkeypatch.setattr(ledger_module, "LEAST_BYTES", 1)
    monkeypatch.setattr(old.ledger, "_refuse_rivals", lambda mine: None)
    for number in range(5, 9):
        old.commit(entry_of(number, appended=7))
        old.ledger._logs = old.ledger._logs[-1:]
    monkeypatch.undo()
    new.run(3)
    assert [log.name[:8] for log in _logs(store)].count("00000001") > 1
    assert told(Ledger(store).load()) == told(new.state)
    (newest,) = (log for log in _logs(store) if log.name.startswith("00000002"))
    flip_byte(newest, len(MAGIC) + 40)
    assert told(Ledger(store).load()) == told(new.state)


def test_a_driver_that_was_cut_off_stops_before_it_begins_another_log(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "LEAST_BYTES", 1500)
    old = Committing(store)
    new = Committing(store)
    with pytest.raises(BaseInUse, match="another driver has taken it over; this one stops"):
        old.run(100)
    assert told(Ledger(store).load()) == told(new.state)


def test_of_two_drivers_that_begin_the_same_epoch_one_is_refused(store: Store) -> None:
    Committing(store).run(3)
    one, two = Ledger(store), Ledger(store)
    states = one.load(), two.load()
    one.begin(states[0])
    with pytest.raises(BaseInUse, match=f"base {store}: .* another driver; this one stops"):
        two.begin(states[1])
    one.commit(entry_of(3))
    one.close()
    assert Ledger(store).load().entry == 3


def test_they_need_not_have_read_the_same_entries(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    old = Committing(store).run(3)
    one, two = Ledger(store), Ledger(store)
    first = one.load()
    old.run(1)
    second = two.load()
    one.begin(first)
    written: list[str] = []
    monkeypatch.setattr(store, "write_new", lambda name, data: written.append(name))
    with pytest.raises(BaseInUse):
        two.begin(second)
    # Its log would be newer than the one that counts.
    assert written == []
    one.commit(entry_of(3, appended=1))
    one.close()
    assert len(list(Ledger(store).entries())[-1].appended) == 1


def test_one_that_begins_while_another_does_takes_its_log_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    old = Committing(store).run(3)
    one, two = Ledger(store), Ledger(store)
    first = one.load()
    old.run(1)
    second = two.load()
    write_new: Callable[[str, bytes], bool] = store.write_new

    def between(name: str, data: bytes) -> bool:
        # The other comes after the look for others and before the log is there.
        monkeypatch.undo()
        one.begin(first)
        return write_new(name, data)

    monkeypatch.setattr(store, "write_new", between)
    with pytest.raises(BaseInUse):
        two.begin(second)
    one.commit(entry_of(3, appended=1))
    one.close()
    assert [log.name for log in _logs(store)][-1] == "00000002-000000000003.log"
    assert len(list(Ledger(store).entries())[-1].appended) == 1


def test_a_log_counts_up_to_where_the_next_begins() -> None:
    assert spans([]) == []
    assert spans([(1, 0)]) == [Span((1, 0), None)]
    assert spans([(1, 0), (1, 7), (2, 7), (3, 9)]) == [
        Span((1, 0), 7),
        Span((1, 7), 7),
        Span((2, 7), 9),
        Span((3, 9), None),
    ]
    # The first driver has begun a log at 20 although the second had taken over at 9.
    assert spans([(1, 0), (1, 20), (2, 9)]) == [Span((1, 0), 9), Span((2, 9), None)]
