"""A grouping of another package: a subclass, used by its class or found by its name."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from flows import numbers

from elastream.applications.groupings import BUILT_IN, grouping_named, grouping_names
from elastream.errors import OperatorFailed, SettingError, TopologyError
from elastream.extensions import installed
from elastream.routing import LoadMeasure, Sender, Snapshot, split
from elastream.testing import LocalEngine
from elastream.topology import Grouping, groupings


@dataclass(frozen=True)
class Ranges(Grouping):
    """Ranges of a column: one for each replica."""

    columns: tuple[str, ...] = ()
    largest: int = 0
    name = "ranges"
    needs_columns = True

    def choose(self, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> object:  # type: ignore[override]
        return np.asarray(batch.column(self.columns[0])) * len(to.active) // (self.largest + 1)


@dataclass(frozen=True)
class TwoThirds(Grouping):
    """Two thirds to the least busy replica, the others share the rest."""

    name = "two_thirds"

    @property
    def load(self) -> LoadMeasure:
        return LoadMeasure.BUSY

    def spread(self, rows: int, to: Snapshot, turn: int) -> list[int]:
        loads = to.load or (0.0,) * len(to.active)
        best = min(range(len(loads)), key=loads.__getitem__)
        counts = [rows // 3 // max(1, len(loads) - 1)] * len(loads)
        counts[best] += rows - sum(counts)
        return counts


def test_a_subclass_that_looks_at_rows_chooses_the_replica(tmp_path: Path) -> None:
    flow = numbers(90).map("a", lambda row: row, after="in", replicas=3, grouping=Ranges(("id",), 89)).output("out")
    handle = LocalEngine(virtual=True).run(flow, str(tmp_path))
    assert sorted(handle.output("out").column("id").to_pylist()) == list(range(90))
    parts = split(Ranges(("id",), 89), pa.record_batch({"id": range(90)}), Snapshot((0, 1, 2)), Sender())
    assert {lane: part.rows.column("id").to_pylist() for lane, part in parts.items()} == {
        lane: list(range(30 * lane, 30 * lane + 30)) for lane in range(3)
    }


def test_a_subclass_that_says_how_many_gets_the_loads_it_asks_for(tmp_path: Path) -> None:
    to = Snapshot((0, 1, 2), load=(0.5, 0.1, 0.9), cost=0.01)
    parts = split(TwoThirds(), pa.record_batch({"id": range(9)}), to, Sender())
    assert {lane: part.rows.num_rows for lane, part in parts.items()} == {0: 1, 1: 7, 2: 1}
    flow = numbers(300).map("a", lambda row: row, after="in", replicas=3, grouping=TwoThirds()).output("out")
    handle = LocalEngine(virtual=True).run(flow, str(tmp_path))
    assert Counter(handle.output("out").column("id").to_pylist()) == Counter(range(300))


def test_columns_of_a_subclass_are_checked_like_those_of_others() -> None:
    flow = numbers(10).map("a", lambda row: row, after="in", grouping=Ranges(("key",), 9)).output("out")
    with pytest.raises(TopologyError, match=r"grouping ranges\(key\) wants column 'key', but 'in' gives id"):
        flow.topology.build()
    flow = numbers(10).map("a", lambda row: row, after="in", grouping=Ranges((), 9)).output("out")
    with pytest.raises(TopologyError, match="grouping ranges without a key column; write ranges"):
        flow.topology.build()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([0, 1], "got 2; return one number per row"),
        ([0.5] * 4, "got list with float64; return an array of integers"),
        ([0, 1, 2, 7], "from 0 to 2, got 7 for row 3"),
    ],
)
def test_a_wrong_choice_is_said_in_one_line(answer: list[float], said: str) -> None:
    class Wrong(Grouping):
        name = "wrong"

        def choose(self, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> object:  # type: ignore[override]
            return answer

    with pytest.raises(OperatorFailed, match=re.escape(said)):
        split(Wrong(), pa.record_batch({"id": range(4)}), Snapshot((0, 1, 2)), Sender())


def test_a_subclass_without_a_choice_says_what_to_override() -> None:
    class Idle(Grouping):
        name = "idle"

    with pytest.raises(OperatorFailed, match="grouping idle: override spread or choose"):
        split(Idle(), pa.record_batch({"id": range(4)}), Snapshot((0, 1, 2)), Sender())


THEIRS = """
from dataclasses import dataclass
from elastream.topology import Grouping

@dataclass(frozen=True)
class Last(Grouping):
    name = "last"

    def spread(self, rows, to, turn):
        return [0] * (len(to.active) - 1) + [rows]

last = Last()
number = 3

def by(column):
    return Last()
"""


def test_packages_add_groupings_by_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_groupings.py").write_text(THEIRS)
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    entries = "last = their_groupings:last\nby = their_groupings:by\nno = their_groupings:number\nshuffle = x:y\n"
    (about / "entry_points.txt").write_text(f"[elastream.groupings]\n{entries}")
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.cache_clear()
    try:
        assert grouping_names()[-3:] == ("by", "last", "no") and grouping_named("shuffle") is groupings.shuffle
        last = grouping_named("last")
        parts = split(last, pa.record_batch({"id": range(4)}), Snapshot((0, 1, 2)), Sender())
        assert list(parts) == [2]
        assert grouping_named("by", "id") == last
        assert grouping_named(f"{tmp_path}/their_groupings.py:Last").name == "last"
        with pytest.raises(SettingError, match=r"grouping 'lost': expected one of shuffle.*; did you mean 'last'"):
            grouping_named("lost")
        with pytest.raises(SettingError, match=r"grouping 'no': .*int"):
            grouping_named("no")
    finally:
        installed.cache_clear()


def test_every_built_in_grouping_has_a_name_and_a_model() -> None:
    made = {name: grouping_named(name, "id") for name in BUILT_IN}
    assert {name: grouping.name for name, grouping in made.items()} == {name: name for name in BUILT_IN}
    assert all(grouping.simulated_as is not None for grouping in made.values())
