"""The audit of what keyed operators remember: every change and every whole group is there and whole, or is named."""

import os
import shutil
from pathlib import Path

import pytest
from flows import finish
from lanes_on_disk import flip_byte
from word_counts import counting, words

from elastream import rules
from elastream.cli.main import main
from elastream.lanes import Store, audit
from elastream.lanes.audit import _named_twice
from elastream.lanes.audit_states import log_problems, replay_problems, snapshot_problems
from elastream.lanes.entries import Entry, GroupWhole, StateChange
from elastream.lanes.ledger import Ledger
from elastream.lanes.runs import packed, unpacked
from elastream.lanes.segment_files import SegmentReader
from elastream.lanes.segments import SchemaId, Slice, decode_schema
from elastream.lanes.state import LedgerState
from elastream.lanes.state_log import Change
from elastream.lanes.state_sums import GroupSums, packed_sums, unpacked_sums
from elastream.testing import LocalEngine


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A count that has ended: some groups were written whole, and changes came behind them."""
    base = tmp_path_factory.mktemp("counted") / "base"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "LEAST_ROWS", 300)
        patch.setattr(rules, "MOST_CHANGES", 20)
        with LocalEngine().start(counting(words(6000, 200, 1.5)), str(base)) as handle:
            finish(handle)
    return base


@pytest.fixture
def base(counted: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(counted, tmp_path / "base"))


def state_of(base: Path) -> LedgerState:
    return Ledger(Store(str(base))).load()


def piece_of(base: Path, what: str) -> Slice:
    log = state_of(base).logs["count"]
    return log.changes[-1].slice if what == "change" else next(w for w in log.wholes.values() if w.slices).slices[0]


@pytest.mark.parametrize("what", ["change", "whole"])
@pytest.mark.parametrize("how", ["flip", "cut", "gone"])
def test_a_damaged_segment_of_a_state_is_named_with_one_line(
    base: Path, what: str, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(Store(str(base))).problems == ()
    piece = piece_of(base, what)
    path = base / "segments" / piece.segment
    whole = path.read_bytes()
    if how == "flip":
        flip_byte(path, piece.offset + piece.length // 2)
    elif how == "cut":
        os.truncate(path, piece.offset + piece.length - 1)
    else:
        path.unlink()
    found = audit(Store(str(base))).problems
    wanted = "it is gone, but the ledger needs it" if how == "gone" else "do not have checksum"
    assert [(problem.startswith(f"state of count: segment segments/{piece.segment}")) for problem in found] == [True]
    assert wanted in found[0] and "restore" in found[0] and "\n" not in found[0]
    assert main(["audit", str(base)]) != 0
    assert found[0] in capsys.readouterr().out
    path.write_bytes(whole)
    assert audit(Store(str(base))).problems == ()
    assert main(["audit", str(base)]) == 0


def test_a_change_that_is_missing_is_named(base: Path) -> None:
    log = state_of(base).logs["count"]
    number = log.changes[-2].number
    del log.changes[-2]
    assert log_problems("count", log) == [f"state of count: change {number} is not there"]


def test_a_group_with_fewer_keys_than_told_is_named(base: Path) -> None:
    log = state_of(base).logs["count"]
    group, whole = next((group, whole) for group, whole in log.wholes.items() if whole.keys)
    log.wholes[group] = whole._replace(keys=whole.keys + 1)
    assert log_problems("count", log) == [
        f"state of count: key group {group} has {whole.keys} of {whole.keys + 1} keys"
    ]


def test_a_change_whose_groups_are_not_told_is_named(base: Path) -> None:
    log = state_of(base).logs["count"]
    number, piece, _ = log.changes[-1]
    log.changes[-1] = Change(number, piece._replace(runs=piece.runs[:-4]))
    (problem,) = log_problems("count", log)
    assert problem.startswith(f"state of count: change {number} tells the key groups of ")


def test_a_change_that_is_named_twice_is_found(base: Path) -> None:
    state = state_of(base)
    log = state.logs["count"]
    log.add(log.changes[-1].slice)
    assert _named_twice([], state) == 1


def changed(*sums: tuple[int, int], before: int = 0) -> StateChange:
    """A change of some groups, each with its checksum after it, and the one before it of them all."""
    piece = Slice("file", 0, 0, 0, SchemaId("x"), 0, len(sums), packed((group, 1) for group, _ in sums))
    return StateChange("count", piece, packed_sums(GroupSums(before, checksum) for _, checksum in sums))


def whole(group: int, checksum: int, since: int = -1, before: int | None = None) -> GroupWhole:
    return GroupWhole("count", group, 0, 0, [], since, checksum, checksum if before is None else before)


def found_in(*entries: Entry) -> list[str]:
    state = LedgerState()
    state.apply(Entry(0, 0.0, states={"count": "columns"}))
    for entry in entries:
        state.apply(entry)
    return snapshot_problems(entries, state)


def test_a_snapshot_must_be_what_the_change_before_it_made() -> None:
    first, second = Entry(1, 0.0, changes=[changed((3, 48), (5, 7))]), Entry(2, 0.0, changes=[changed((3, 49))])
    assert found_in(first, second, Entry(3, 0.0, wholes=[whole(3, 49, 2), whole(5, 7, 2)])) == []
    (problem,) = found_in(first, second, Entry(3, 0.0, wholes=[whole(3, 46, 2), whole(5, 7, 2)]))
    assert problem.startswith(
        "state of count: the snapshot of key group 3 in entry 3, as of change 2, is not what the changes before 2 made of it"
    )
    # Where an entry does not tell, it is as of that entry.
    assert len(found_in(first, second, Entry(3, 0.0, wholes=[whole(3, 46)]))) == 1
    # One of an earlier change is compared with that one.
    assert found_in(first, second, Entry(3, 0.0, wholes=[whole(3, 48, 1)])) == []


def test_a_snapshot_must_be_what_the_one_before_it_was_when_nothing_changed() -> None:
    first, second = Entry(1, 0.0, wholes=[whole(3, 9, 0)]), Entry(2, 0.0, wholes=[whole(3, 8, 0, before=9)])
    assert found_in(first, second) == [], "keys that were too old were left out"
    assert len(found_in(first, second, Entry(3, 0.0, wholes=[whole(3, 9, 0)]))) == 1


def test_a_change_must_begin_with_what_was_there_before_it() -> None:
    first, snapshot = Entry(1, 0.0, changes=[changed((3, 48))]), Entry(2, 0.0, wholes=[whole(3, 40, 1, before=48)])
    assert found_in(first, Entry(2, 0.0, changes=[changed((3, 49), before=48)])) == []
    assert found_in(first, snapshot, Entry(3, 0.0, changes=[changed((3, 41), before=40)])) == []
    (problem,) = found_in(first, Entry(2, 0.0, changes=[changed((3, 47), before=46)]))
    assert problem.startswith(
        "state of count: the host that made change 1 in entry 2 had another key group 3 than the changes"
    )
    assert len(found_in(first, snapshot, Entry(3, 0.0, changes=[changed((3, 49), before=48)]))) == 1


def test_what_older_versions_did_not_record_is_not_compared() -> None:
    old = changed((3, 48))._replace(sums=b"")
    assert found_in(Entry(1, 0.0, changes=[old]), Entry(2, 0.0, wholes=[whole(3, 46, 1)])) == []
    assert found_in(Entry(1, 0.0, changes=[changed((3, 48))]), Entry(2, 0.0, wholes=[whole(3, 0, 1)])) == []


def test_an_operator_that_was_forgotten_begins_anew() -> None:
    forgotten = Entry(2, 0.0, forgotten=["count"], states={"count": "columns"})
    assert found_in(Entry(1, 0.0, changes=[changed((3, 48))]), forgotten, Entry(3, 0.0, wholes=[whole(3, 1, 0)])) == []


def test_a_snapshot_or_a_change_whose_checksum_is_not_that_of_its_content_is_named(base: Path) -> None:
    store = Store(str(base))
    state = state_of(base)
    schemas = {key: decode_schema(text) for key, text in state.schemas.items()}
    reader, log = SegmentReader(store), state.logs["count"]

    def problems(most_keys: int = 10**6) -> list[str]:
        return replay_problems("count", log, lambda piece: reader.read(piece, schemas[piece.schema]), most_keys)

    assert problems() == problems(most_keys=1) == []
    group, known = next((group, whole) for group, whole in log.wholes.items() if whole.keys)
    log.wholes[group] = known._replace(checksum=known.checksum - 1)
    text = f"state of count: the snapshot of key group {group} does not have the checksum it tells"
    assert problems() == problems(most_keys=1) == [text]
    log.wholes[group] = known
    number, piece, sums = log.changes[-1]
    log.changes[-1] = Change(
        number, piece, packed_sums(GroupSums(before, after ^ 1) for before, after in unpacked_sums(sums))
    )
    groups = sorted({group for group, _ in unpacked(piece.runs) if log.whole(group).since <= number})
    assert [one.partition(" is not what")[0] for one in problems()] == [
        f"state of count: key group {group} after change {number}" for group in groups
    ]
    reader.close()
