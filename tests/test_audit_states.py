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
from elastream.lanes.audit import _named_twice, _not_as_told
from elastream.lanes.ledger import Ledger
from elastream.lanes.segments import Slice
from elastream.lanes.state import LedgerState
from elastream.lanes.state_log import Change
from elastream.testing import LocalEngine


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A count that has ended: some groups were written whole, and changes came behind them."""
    base = tmp_path_factory.mktemp("counted") / "base"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "LEAST_ROWS", 300)
        patch.setattr(rules, "MOST_CHANGES", 20)
        with LocalEngine().run(counting(words(6000, 200, 1.5)), str(base)) as handle:
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
    assert _not_as_told("count", log) == [f"state of count: change {number} is not there"]


def test_a_group_with_fewer_keys_than_told_is_named(base: Path) -> None:
    log = state_of(base).logs["count"]
    group, whole = next((group, whole) for group, whole in log.wholes.items() if whole.keys)
    log.wholes[group] = whole._replace(keys=whole.keys + 1)
    assert _not_as_told("count", log) == [
        f"state of count: key group {group} has {whole.keys} of {whole.keys + 1} keys"
    ]


def test_a_change_whose_groups_are_not_told_is_named(base: Path) -> None:
    log = state_of(base).logs["count"]
    number, piece = log.changes[-1]
    log.changes[-1] = Change(number, piece._replace(runs=piece.runs[:-4]))
    (problem,) = _not_as_told("count", log)
    assert problem.startswith(f"state of count: change {number} tells the key groups of ")


def test_a_change_that_is_named_twice_is_found(base: Path) -> None:
    state = state_of(base)
    log = state.logs["count"]
    log.add(log.changes[-1].slice)
    assert _named_twice([], state) == 1
