"""Readers of outputs, as Spark calls them: none loses what another has read, and a new base is no old one."""

import shutil
from pathlib import Path

import pytest
from flows import finish, numbers

from elastream.connectors.outputs import MOST_PARTITIONS, OutputStreamReader
from elastream.errors import SettingError
from elastream.lanes import Store
from elastream.lanes.readers import acknowledged, check_reader
from elastream.testing import LocalEngine


def run_once(base: Path, count: int, seconds: float = 0.2) -> None:
    with LocalEngine().start(numbers(count, seconds).output("out", after="in"), str(base)) as handle:
        finish(handle)


def reader(base: Path, name: str) -> OutputStreamReader:
    return OutputStreamReader(str(base), "out", name, ["id"])


def test_what_the_first_reader_has_read_stays_for_the_second_that_has_committed_nothing(tmp_path: Path) -> None:
    run_once(tmp_path, 100)
    first, second = reader(tmp_path, "first"), reader(tmp_path, "second")
    begun = first.initialOffset(), second.initialOffset()
    first.commit(first.latestOffset(begun[0], None))
    assert acknowledged(Store(str(tmp_path)), "out") == 0
    end = second.latestOffset(begun[1], None)
    rows = [
        n for part in second.partitions(begun[1], end) for b in second.read(part) for n in b.column("id").to_pylist()
    ]
    assert sorted(rows) == list(range(100))
    second.commit(end)
    assert acknowledged(Store(str(tmp_path)), "out") == 100


@pytest.mark.parametrize("count", [20, 300])
def test_a_base_that_was_begun_anew_is_not_taken_for_the_old_one(tmp_path: Path, count: int) -> None:
    base = tmp_path / "base"
    run_once(base, 100)
    old = reader(base, "a")
    read = old.latestOffset(old.initialOffset(), None)
    shutil.rmtree(base)
    run_once(base, count)
    with pytest.raises(SettingError, match=r"output 'out': base .* was begun anew since reader 'a' read from it"):
        old.latestOffset(read, None)


def test_a_long_backlog_is_read_in_few_tasks(tmp_path: Path) -> None:
    run_once(tmp_path, 2000, seconds=3.0)
    one = reader(tmp_path, "a")
    begun = one.initialOffset()
    end = one.latestOffset(begun, None)
    parts = one.partitions(begun, end)
    rows = [n for part in parts for batch in one.read(part) for n in batch.column("id").to_pylist()]
    assert len(parts) <= MOST_PARTITIONS and sorted(rows) == list(range(2000))


@pytest.mark.parametrize("name", ["../../x", "..", ".hidden", "", "a/b", "a" * 65, "ü"])
def test_the_name_of_a_reader_is_the_name_of_a_file(name: str) -> None:
    with pytest.raises(SettingError, match="reader "):
        check_reader(name)
