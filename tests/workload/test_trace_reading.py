"""Trace files that are read, and the errors that name the line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from arrivals import PATIENT, trace_file
from hypothesis import given
from hypothesis import strategies as st

from elastream.errors import SettingError
from elastream.workload import constant, formula, from_csv


def test_a_trace_file_says_how_many_come_from_each_line_to_the_next(tmp_path: Path) -> None:
    arrivals = from_csv(trace_file(tmp_path, "0,10", "2,0", "4,30", "6,40"))
    # The last step is as long as the others.
    assert arrivals.ends_s == (0.0, 2.0, 4.0, 6.0, 8.0)
    assert arrivals.counts == (0.0, 10.0, 10.0, 40.0, 80.0)


def test_a_trace_begins_at_its_first_line(tmp_path: Path) -> None:
    arrivals = from_csv(trace_file(tmp_path, "1700000000,5", "1700000010,15"))
    assert arrivals.ends_s == (0.0, 10.0, 20.0)
    assert arrivals.due_times(0, 1).tolist() == [2.0]


def test_a_trace_of_one_line_lasts_a_second(tmp_path: Path) -> None:
    arrivals = from_csv(trace_file(tmp_path, "7,4"))
    assert (arrivals.ends_s, arrivals.counts) == ((0.0, 1.0), (0.0, 4.0))


def test_speed_compresses_time_and_keeps_the_tuples(tmp_path: Path) -> None:
    path = trace_file(tmp_path, "0,10", "60,20")
    plain, fast = from_csv(path), from_csv(path, speed=60)
    assert fast.seconds == 2.0
    assert fast.total == plain.total == 30
    assert fast.due_times(0, 30) == pytest.approx(plain.due_times(0, 30) / 60)
    assert fast.per_second(0.5) == pytest.approx(60 * plain.per_second(30))


def test_scale_multiplies_the_tuples_and_keeps_time(tmp_path: Path) -> None:
    path = trace_file(tmp_path, "0,10", "60,20")
    plain, big = from_csv(path), from_csv(path, scale=2.5)
    assert big.seconds == plain.seconds
    assert big.total == 75
    assert big.per_second(30) == pytest.approx(2.5 * plain.per_second(30))


@PATIENT
@given(
    events=st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any),
    speed=st.sampled_from([0.5, 1.0, 4.0, 60.0]),
    scale=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_speed_and_scale_do_not_meddle_with_each_other(
    tmp_path_factory: pytest.TempPathFactory, events: list[int], speed: float, scale: float
) -> None:
    path = trace_file(tmp_path_factory.mktemp("trace"), *(f"{second},{count}" for second, count in enumerate(events)))
    arrivals = from_csv(path, speed=speed, scale=scale)
    assert arrivals.total == int(sum(events) * scale)
    assert arrivals.seconds == pytest.approx(len(events) / speed)


def _refusal(path: Path) -> str:
    with pytest.raises(SettingError) as caught:
        from_csv(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("lines", "number", "said"),
    [
        (["0,1", "1,x"], 3, "expected two numbers, got '1,x'"),
        (["0,1", "1"], 3, "expected two numbers, got '1'"),
        (["0,1,2"], 2, "expected two numbers, got '0,1,2'"),
        (["0,1", "", "2,2"], 3, "expected two numbers, got ''"),
        (["0,1", "1,2", "2,-3"], 4, "expected a count of 0 or more, got -3.0"),
        (["0,nan"], 2, "expected a count of 0 or more, got nan"),
        (["0,inf"], 2, "expected a count of 0 or more, got inf"),
        (["0,1", "5,1", "4,1"], 4, "time goes from 5.0 to 4.0; sort the trace by t_seconds"),
        (["0,1", "0,1"], 3, "time goes from 0.0 to 0.0; sort the trace by t_seconds"),
        (
            ["0,1", "60,2", "180,3", "240,3"],
            4,
            "gap: time goes from 60 to 180 in steps of 60 s, 1 line is missing; add t_seconds 120 with 0 events if nothing came",
        ),
        (
            ["0,1", "0.5,2", "2.5,3"],
            4,
            "gap: time goes from 0.5 to 2.5 in steps of 0.5 s, 3 lines are missing; add t_seconds 1 to 2 with 0 events if "
            "nothing came",
        ),
        (
            ["0,1", "2,2", "3,3"],
            3,
            "gap: time goes from 0 to 2 in steps of 1 s, 1 line is missing; add t_seconds 1 with 0 events if nothing came",
        ),
        (
            ["0,1", "10,2", "20,3", "25,4", "35,5"],
            5,
            "time goes from 20 to 25, expected a step of 10 s as elsewhere; keep the step constant",
        ),
    ],
)
def test_an_error_in_a_trace_names_its_line(tmp_path: Path, lines: list[str], number: int, said: str) -> None:
    path = trace_file(tmp_path, *lines)
    assert _refusal(path) == f"trace {path}, line {number}: {said}"


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\r\n\r\n"])
def test_blank_lines_at_the_end_of_a_trace_are_no_error(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(f"t_seconds,events\n0,1\n1,2{ending}".encode())
    assert from_csv(path).counts == (0.0, 1.0, 3.0)


@pytest.mark.parametrize("time", ["nan", "inf"])
def test_a_time_that_is_no_time_is_named_and_not_the_count_beside_it(tmp_path: Path, time: str) -> None:
    path = trace_file(tmp_path, "0,1", f"{time},5")
    message = _refusal(path)
    assert message.startswith(f"trace {path}, line 3: ")
    assert f"got {time}" in message


@pytest.mark.parametrize("header", ["time,count", "0,1", "events,t_seconds", "t_seconds;events"])
def test_a_trace_without_its_header_is_told_which(tmp_path: Path, header: str) -> None:
    path = trace_file(tmp_path, "1,2", header=header)
    assert _refusal(path) == f"trace {path}, line 1: expected t_seconds,events, got {header!r}"


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_bytes(b"")
    assert _refusal(path) == f"trace {path}, line 1: expected t_seconds,events, got ''"


def test_a_trace_with_only_its_header_is_refused(tmp_path: Path) -> None:
    path = trace_file(tmp_path)
    assert _refusal(path) == f"trace {path}: no line below the header; it needs at least one step"


def test_a_trace_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no such file; name a built-in trace or a CSV" in _refusal(tmp_path / "none.csv")
    assert "no such file" in _refusal(tmp_path)


def test_steps_that_differ_by_rounding_only_are_no_gap(tmp_path: Path) -> None:
    path = trace_file(tmp_path, *(f"{1.7e9 + number / 10:.1f},1" for number in range(50)))
    assert from_csv(path).seconds == pytest.approx(5.0, abs=1e-3)


def test_a_trace_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00\xff\xfe\n")
    assert _refusal(path).startswith(f"trace {path}")


MORE_THAN_NOTHING: dict[str, Callable[[Path, float], object]] = {
    "per_second": lambda path, value: constant(value, 10),
    "seconds": lambda path, value: constant(10, value),
    "seconds of a formula": lambda path, value: formula(lambda t: 1 + 0 * t, value),
    "step_s": lambda path, value: formula(lambda t: 1 + 0 * t, 10, step_s=value),
    "speed": lambda path, value: from_csv(path, speed=value),
    "scale": lambda path, value: from_csv(path, scale=value),
}


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", MORE_THAN_NOTHING)
def test_rates_and_lengths_are_more_than_nothing_and_less_than_for_ever(
    tmp_path: Path, name: str, value: float
) -> None:
    path = trace_file(tmp_path, "0,1")
    with pytest.raises(SettingError, match=f"^{name.split()[0]} must be .*, got {value}"):
        MORE_THAN_NOTHING[name](path, value)
