"""A base that goes on says so; one that begins anew is emptied of its own files, and of nothing else."""

import logging
from pathlib import Path
from typing import Any

import pytest
from flows import finish, numbers

from elastream import Topology
from elastream.cli.main import main
from elastream.connectors.dataframes import state_rescale
from elastream.engine.fresh import FILES, FOLDERS
from elastream.errors import BaseInUse, SettingError
from elastream.testing import LocalEngine


def flow(count: int = 20) -> Topology:
    def visits(key: int, rows: Any, state: Any) -> Any:
        state.n += len(rows)
        yield {"id": key}

    topology = numbers(count)
    topology.key_by("id", after="in").process("a", visits, state="n long", initial={"n": 0}, schema="id long")
    topology.output("out", after="a")
    return topology


def run_once(base: Path, count: int = 20, **how: Any) -> str:
    with LocalEngine(virtual=True).start(flow(count), str(base), policy="elastic", **how) as handle:
        finish(handle)
        return handle.resumed


def test_a_base_that_goes_on_says_how_far_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert run_once(tmp_path) == "" and not caplog.records
    with caplog.at_level(logging.WARNING, "elastream"):
        resumed = run_once(tmp_path)
    assert resumed.startswith(f"base {tmp_path} resumes at entry ")
    assert resumed.endswith(
        ": 20 read, 0 queued, source in is exhausted, nothing is left to do; fresh=True or --fresh begins anew"
    )
    assert [record.getMessage() for record in caplog.records] == [resumed]
    # The trace has become longer: there is more to read.
    assert run_once(tmp_path, 30).endswith(": 20 read, 0 queued")


def test_a_fresh_base_has_nothing_of_earlier_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run_once(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "pictures").mkdir()
    with caplog.at_level(logging.WARNING, "elastream"):
        resumed = run_once(tmp_path, 30, fresh=True)
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith(f"base {tmp_path} begins anew: ") and said.endswith(
        " entries and 20 tuples that waited were deleted"
    )
    assert resumed == ""
    with LocalEngine(virtual=True).start(flow(30), str(tmp_path)) as handle:
        finish(handle)
        assert handle.audit().read == 30 and handle.output("out").num_rows == 30
        assert handle.state("a").num_rows == 30
    assert (tmp_path / "notes.txt").read_text() == "mine" and (tmp_path / "pictures").is_dir()


def test_all_that_a_base_holds_is_known(tmp_path: Path) -> None:
    run_once(tmp_path)
    assert state_rescale.UNFINISHED in FILES
    assert {path.name for path in tmp_path.iterdir()} <= {*FOLDERS, *FILES, "lock", "claims"}


def test_a_new_base_may_be_fresh(tmp_path: Path) -> None:
    assert run_once(tmp_path / "new", fresh=True) == ""


def test_a_directory_that_is_no_base_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ledger.txt").write_text("accounts")
    with pytest.raises(SettingError, match="is not empty and no base of Elastream, so nothing of it is deleted"):
        run_once(tmp_path, fresh=True)
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.txt"]


def test_a_base_that_another_driver_has_is_not_deleted(tmp_path: Path) -> None:
    with LocalEngine().start(numbers(40, 1.0).output("out", after="in"), str(tmp_path)) as handle:
        with pytest.raises(BaseInUse):
            run_once(tmp_path, fresh=True)
        finish(handle)
        assert handle.audit().problems == () and handle.output("out").num_rows == 40


def test_a_deletion_that_was_cut_off_can_be_repeated(tmp_path: Path) -> None:
    run_once(tmp_path)
    for path in (tmp_path / "ledger").iterdir():
        path.unlink()
    assert run_once(tmp_path, fresh=True) == ""


def test_fresh_needs_a_base(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "tweets", "--fresh"]) == 2
    assert "--fresh begins a base anew; name one with --base" in capsys.readouterr().err
