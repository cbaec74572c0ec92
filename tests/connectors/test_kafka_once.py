"""Records that come again, without a broker: which are new, and how much a reader remembers to know it."""

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream import kafka
from elastream.lanes import Entry, Ledger, LedgerState, Store
from elastream.lanes import ledger as ledger_module
from elastream.rules import MOST_ROWS


@given(st.data())
def test_a_reader_sees_each_record_once_however_tries_were_cut_and_mixed(data: st.DataObject) -> None:
    """Ticks come one after another; each may have had tries that wrote some of it, in any order, before the one that counts."""
    memory, new, expected = kafka.Once(), [], []
    for tick in range(data.draw(st.integers(1, 4))):
        names = [
            kafka.RecordName("run", tick, f"out-{task}", number, 0)
            for task in range(data.draw(st.integers(1, 3)))
            for number in range(data.draw(st.integers(0, 20)))
        ]
        expected += names
        tries = [data.draw(st.permutations(names))[: data.draw(st.integers(0, len(names)))] for _ in range(2)]
        # What an old attempt still had in its hands may come when the next tick has begun.
        late = expected[-30 : -len(names) or None] if data.draw(st.booleans()) else []
        arrived = [*tries[0], *tries[1], *names, *(late if names else [])]
        new += [name for name in arrived if memory.is_new("t", 7, name)]
    assert Counter(new) == Counter(expected)


def test_records_of_others_are_always_new() -> None:
    memory = kafka.Once()
    for header in (
        ("trace", b"x"),
        ("elastream", b"x"),
        ("elastream", b"r/1/out-0/99999999999/5"),
        ("elastream", f"r/1/out-0/{MOST_ROWS}/5".encode()),
        ("elastream", f"{'r' * 65}/1/out-0/1/5".encode()),
        ("elastream", b"\xff"),
    ):
        assert all(memory.is_new("t", 0, kafka.name_of([header])) for _ in range(3))
    assert memory.to_json() == {}
    assert kafka.RecordName.parse(f"r/1/out-0/{MOST_ROWS - 1}/5") == ("r", 1, "out-0", MOST_ROWS - 1, 5)


def test_forged_names_make_a_reader_remember_little() -> None:
    memory = kafka.Once()
    real = kafka.RecordName("real", 5, "out-0", 0, 0)
    tasks = [kafka.RecordName("forged", 1, f"out-{task}", MOST_ROWS - 1, 0) for task in range(100)]
    new = [[memory.is_new("t", 0, name) for name in tasks] for _ in range(2)]
    # What is beyond the bounds counts as nobody's: never a repeat.
    assert all(new[0]) and new[1] == [False] * 16 + [True] * 84
    assert len(json.dumps(memory.to_json())) < 10_000
    assert memory.is_new("t", 0, real) and not memory.is_new("t", 0, real)
    for number in range(1000):
        memory.is_new("t", 0, kafka.RecordName(f"run-{number}", 1, "out-0", 0, 0))
        if number % 10 == 0:
            # One that still writes is not the oldest.
            assert not memory.is_new("t", 0, real)
    assert len(memory.to_json()["t/0"]) == kafka.MOST_RUNS == len(memory.news()["t/0"])


def test_topics_of_a_run_are_told_apart() -> None:
    memory = kafka.Once()
    ahead, behind = kafka.RecordName("run", 9, "out-0", 0, 0), kafka.RecordName("run", 4, "copies-0", 0, 0)
    assert memory.is_new("one", 0, ahead) and memory.is_new("two", 0, behind)
    assert memory.are_new(["one/0", "two/0", "two/1"], ["run/9/out-0/0/0", "run/4/copies-0/0/0", None]) == [
        False,
        False,
        True,
    ]


def test_a_memory_without_topics_is_still_understood() -> None:
    memory = kafka.Once({"7/run": [3, {"out-0": "Ag=="}]})
    names = [f"run/{tick}/out-0/{sequence}/0" for tick, sequence in ((2, 5), (3, 0), (3, 1), (4, 1))]
    assert memory.are_new(["t/7"] * 4, names) == [False, True, False, True]
    assert memory.are_new(["t/8"] * 4, names) == [True] * 4
    assert set(memory.news()) == {"t/7", "t/8"}


def test_a_reader_that_is_killed_after_any_entry_goes_on_with_the_same_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch reads one of forty partitions, every record twice; after each commit a new driver takes over, through many logs."""
    monkeypatch.setattr(ledger_module, "LEAST_BYTES", 2000)
    partitions, ticks = 40, 3
    whole, new, sizes = kafka.Once(), [], []
    for tick in range(ticks):
        for partition in range(partitions):
            ledger = Ledger(Store(str(tmp_path)))
            state = ledger.load()
            ledger.begin(state)
            memory = kafka.Once(state.memories.get("in"))
            names = [kafka.RecordName("run", tick, f"out-{partition}", number % 5, 0) for number in range(10)]
            new += [name for name in names if memory.is_new("t", partition, name)]
            assert [name for name in names if whole.is_new("t", partition, name)] == names[:5]
            entry = Entry(state.entry + 1, 0.0, memories={"in": memory.news()})
            assert list(entry.memories["in"]) == [f"t/{partition}"]
            sizes.append(len(msgspec.msgpack.encode(entry)))
            state.apply(entry)
            ledger.commit(entry)
            ledger.tidy(state)
            ledger.close()
    assert len(new) == len(set(new)) == ticks * partitions * 5
    assert Ledger(Store(str(tmp_path))).load().memories["in"] == whole.to_json()
    assert max(sizes) < 200, "an entry has what changed, and not all partitions"


def test_a_batch_that_was_not_committed_is_not_remembered(tmp_path: Path) -> None:
    name = kafka.RecordName("run", 0, "out-0", 0, 0)
    ledger = Ledger(Store(str(tmp_path)))
    ledger.begin(LedgerState())
    ledger.close()
    for _ in range(2):
        memory = kafka.Once(Ledger(Store(str(tmp_path))).load().memories.get("in"))
        assert memory.is_new("t", 0, name)
