"""Workloads that are written as trace files, and read again."""

from pathlib import Path

import pytest
from arrivals import PATIENT, any_arrivals, trace_file
from hypothesis import given
from hypothesis import strategies as st

from elastream.errors import SettingError
from elastream.workload import Arrivals, constant, from_csv, to_csv


def test_a_workload_with_a_constant_step_is_written_with_that_step(tmp_path: Path) -> None:
    path = trace_file(tmp_path, "0,10", "60,0", "120,30")
    to_csv(from_csv(path), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == path.read_bytes()


def test_a_workload_without_one_is_written_in_a_round_step(tmp_path: Path) -> None:
    to_csv(constant(per_second=3, seconds=700), tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[:4] == ["t_seconds,events", "0,1", "0.5,2", "1,1"]
    assert len(lines) == 1 + 1400
    to_csv(constant(per_second=3, seconds=700), tmp_path / "out.csv", step_s=300)
    assert (tmp_path / "out.csv").read_text() == "t_seconds,events\n0,900\n300,900\n600,300\n"


@PATIENT
@given(arrivals=any_arrivals(), step_s=st.sampled_from([0.25, 1.0, 7.0]))
def test_a_workload_that_is_written_and_read_again_has_its_tuples_at_their_step(
    tmp_path_factory: pytest.TempPathFactory, arrivals: Arrivals, step_s: float
) -> None:
    path = tmp_path_factory.mktemp("trace") / "out.csv"
    to_csv(arrivals, path, step_s)
    again = from_csv(path)
    assert again.total == arrivals.total
    if len(again.ends_s) > 2:
        for second in again.ends_s:
            assert again.due_by(second) == arrivals.due_by(second)


def test_a_workload_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"^trace .*/none/out.csv: cannot be written: No such file"):
        to_csv(constant(1, 1), tmp_path / "none" / "out.csv")
    with pytest.raises(SettingError, match=r"^step_s must be more than 0 and finite, got -1"):
        to_csv(constant(1, 1), tmp_path / "out.csv", -1)
