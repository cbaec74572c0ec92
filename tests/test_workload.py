"""When tuples are due: rates, formulas and trace files, and the errors that name the line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.errors import SettingError
from elastream.workload import Arrivals, constant, formula, from_csv

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=100)


@st.composite
def _arrivals(draw: st.DrawFn) -> Arrivals:
    """Steps of any length, many of them without a tuple, some with parts of tuples."""
    steps = draw(
        st.lists(st.tuples(st.integers(1, 5000), st.just(0) | st.integers(0, 4000)), min_size=1, max_size=12).filter(
            lambda steps: sum(count for _, count in steps) >= 8
        )
    )
    ends = np.cumsum([0, *(length for length, _ in steps)]) / 100
    # Eighths are exact in binary, so that sums of them say what they mean.
    counts = np.cumsum([0, *(count for _, count in steps)]) / 8
    return Arrivals(tuple(ends.tolist()), tuple(counts.tolist()))


@PATIENT
@given(arrivals=_arrivals(), data=st.data())
def test_a_tuple_is_due_at_its_time_and_not_before(arrivals: Arrivals, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, arrivals.total - 1))
    (second,) = arrivals.due_times(number, number + 1)
    assert 0 <= second <= arrivals.seconds
    assert arrivals.due_by(float(second)) >= number + 1
    assert arrivals.due_by(float(second) - 1e-6) <= number


@PATIENT
@given(arrivals=_arrivals(), share=st.floats(0, 1))
def test_what_is_due_by_a_second_are_the_tuples_with_a_time_up_to_it(arrivals: Arrivals, share: float) -> None:
    second = share * arrivals.seconds
    times = arrivals.due_times(0, arrivals.total)
    # A tuple due within a billionth of a second of the question may fall to either side.
    assert np.sum(times <= second - 1e-9) <= arrivals.due_by(second) <= np.sum(times <= second + 1e-9)


@PATIENT
@given(arrivals=_arrivals(), share=st.floats(0, 1))
def test_due_times_go_up_and_are_the_same_however_they_are_asked_for(arrivals: Arrivals, share: float) -> None:
    cut = int(share * arrivals.total)
    times = arrivals.due_times(0, arrivals.total)
    assert len(times) == arrivals.total
    assert np.all(np.diff(times) >= 0)
    assert (
        np.concatenate([arrivals.due_times(0, cut), arrivals.due_times(cut, arrivals.total)]).tolist() == times.tolist()
    )


def test_the_inverse_holds_over_an_hour_of_heavy_load() -> None:
    arrivals = constant(400_000, 3600)
    assert arrivals.total == 1_440_000_000
    numbers = np.random.default_rng(3).integers(0, arrivals.total, 300)
    early = [int(n) for n in numbers if arrivals.due_by(float(arrivals.due_times(int(n), int(n) + 1)[0])) <= n]
    assert early == []


def test_a_constant_rate_spreads_tuples_evenly() -> None:
    arrivals = constant(4, 2.5)
    assert arrivals.total == 10
    assert arrivals.seconds == 2.5
    assert arrivals.due_times(0, 10).tolist() == [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5]
    assert [arrivals.due_by(second) for second in (-1, 0, 0.2, 0.25, 1.1, 2.5, 99)] == [0, 0, 0, 1, 4, 10, 10]
    assert [arrivals.per_second(second) for second in (-0.1, 0, 2.4, 2.5, 9)] == [0, 4, 4, 0, 0]


def test_less_than_one_tuple_a_second_comes_in_its_time() -> None:
    arrivals = constant(0.5, 5)
    assert arrivals.total == 2
    assert arrivals.due_times(0, 2).tolist() == [2.0, 4.0]
    assert arrivals.due_by(5) == 2


def test_nobody_is_due_in_steps_without_tuples() -> None:
    arrivals = Arrivals((0.0, 1.0, 2.0, 3.0, 4.0), (0.0, 0.0, 2.0, 2.0, 4.0))
    assert arrivals.due_times(0, 4).tolist() == [1.5, 2.0, 3.5, 4.0]
    assert [arrivals.due_by(second) for second in (0.9, 1.0, 1.5, 2.0, 2.7, 3.0, 3.5, 4.0)] == [0, 0, 1, 2, 2, 2, 3, 4]
    assert [arrivals.per_second(second) for second in (0.5, 1.5, 2.5, 3.5)] == [0, 2, 0, 2]


def test_asking_for_no_tuples_gives_no_times() -> None:
    assert constant(10, 1).due_times(4, 4).tolist() == []


def test_a_formula_gives_its_rate_step_by_step() -> None:
    arrivals = formula(lambda t: np.where(t < 1, 10.0, 30.0), seconds=2, step_s=0.5)
    assert arrivals.ends_s == (0.0, 0.5, 1.0, 1.5, 2.0)
    assert arrivals.counts == (0.0, 5.0, 10.0, 25.0, 40.0)
    assert [arrivals.per_second(second) for second in (0.2, 0.9, 1.2, 1.9)] == [10, 10, 30, 30]


def test_a_formula_may_end_inside_a_step() -> None:
    arrivals = formula(lambda t: 8.0 + 0 * t, seconds=1.25, step_s=0.5)
    assert arrivals.seconds == 1.25
    assert arrivals.total == 10


def test_a_formula_may_be_one_number() -> None:
    assert formula(lambda t: 8.0, seconds=2).total == 16  # type: ignore[arg-type,return-value]


def test_a_wave_gives_as_many_tuples_as_the_area_under_it() -> None:
    arrivals = formula(lambda t: 500 + 400 * np.sin(t / 10), seconds=60)
    area = 500 * 60 + 4000 * (1 - np.cos(6))
    assert arrivals.counts[-1] == pytest.approx(area, rel=1e-4)


@pytest.mark.parametrize(("rate", "seconds"), [(10, 60), (1000, 600), (977, 3600), (100_000, 600)])
def test_a_formula_that_is_constant_gives_as_many_tuples_as_the_constant(rate: int, seconds: int) -> None:
    assert formula(lambda t: rate + 0 * t, seconds).total == constant(rate, seconds).total == rate * seconds


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (lambda t: np.where(t > 3, -2.0, 1.0), "got -2.0 at 3.0 s"),
        (lambda t: np.where(t > 5, np.nan, 1.0), "got nan at 5.0 s"),
        (lambda t: np.where(t > 7, np.inf, 1.0), "got inf at 7.0 s"),
    ],
)
def test_a_formula_that_is_no_rate_says_what_it_gave_and_when(rate: object, said: str) -> None:
    with pytest.raises(SettingError) as caught:
        formula(rate, seconds=10)  # type: ignore[arg-type]
    assert str(caught.value).startswith("rate formula: expected 0 or more per second, got ")
    assert said in str(caught.value)


# -- trace files


def _trace(folder: Path, *lines: str, header: str = "t_seconds,events") -> Path:
    path = folder / "trace.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def test_a_trace_file_says_how_many_come_from_each_line_to_the_next(tmp_path: Path) -> None:
    arrivals = from_csv(_trace(tmp_path, "0,10", "1,0", "2,30", "4,40"))
    # The last step is as long as the one before.
    assert arrivals.ends_s == (0.0, 1.0, 2.0, 4.0, 6.0)
    assert arrivals.counts == (0.0, 10.0, 10.0, 40.0, 80.0)


def test_a_trace_begins_at_its_first_line(tmp_path: Path) -> None:
    arrivals = from_csv(_trace(tmp_path, "1700000000,5", "1700000010,15"))
    assert arrivals.ends_s == (0.0, 10.0, 20.0)
    assert arrivals.due_times(0, 1).tolist() == [2.0]


def test_a_trace_of_one_line_lasts_a_second(tmp_path: Path) -> None:
    arrivals = from_csv(_trace(tmp_path, "7,4"))
    assert (arrivals.ends_s, arrivals.counts) == ((0.0, 1.0), (0.0, 4.0))


def test_speed_compresses_time_and_keeps_the_tuples(tmp_path: Path) -> None:
    path = _trace(tmp_path, "0,10", "60,20")
    plain, fast = from_csv(path), from_csv(path, speed=60)
    assert fast.seconds == 2.0
    assert fast.total == plain.total == 30
    assert fast.due_times(0, 30) == pytest.approx(plain.due_times(0, 30) / 60)
    assert fast.per_second(0.5) == pytest.approx(60 * plain.per_second(30))


def test_scale_multiplies_the_tuples_and_keeps_time(tmp_path: Path) -> None:
    path = _trace(tmp_path, "0,10", "60,20")
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
    path = _trace(tmp_path_factory.mktemp("trace"), *(f"{second},{count}" for second, count in enumerate(events)))
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
    ],
)
def test_an_error_in_a_trace_names_its_line(tmp_path: Path, lines: list[str], number: int, said: str) -> None:
    path = _trace(tmp_path, *lines)
    assert _refusal(path) == f"trace {path}, line {number}: {said}"


@pytest.mark.parametrize("time", ["nan", "inf"])
def test_a_time_that_is_no_time_is_named_and_not_the_count_beside_it(tmp_path: Path, time: str) -> None:
    path = _trace(tmp_path, "0,1", f"{time},5")
    message = _refusal(path)
    assert message.startswith(f"trace {path}, line 3: ")
    assert f"got {time}" in message


@pytest.mark.parametrize("header", ["time,count", "0,1", "events,t_seconds", "t_seconds;events"])
def test_a_trace_without_its_header_is_told_which(tmp_path: Path, header: str) -> None:
    path = _trace(tmp_path, "1,2", header=header)
    assert _refusal(path) == f"trace {path}, line 1: expected t_seconds,events, got {header!r}"


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_bytes(b"")
    assert _refusal(path) == f"trace {path}, line 1: expected t_seconds,events, got ''"


def test_a_trace_with_only_its_header_is_refused(tmp_path: Path) -> None:
    path = _trace(tmp_path)
    assert _refusal(path) == f"trace {path}: no line below the header; it needs at least one step"


def test_a_trace_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no such file; name a built-in trace or a CSV" in _refusal(tmp_path / "none.csv")
    assert "no such file" in _refusal(tmp_path)


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
    path = _trace(tmp_path, "0,1")
    with pytest.raises(SettingError, match=f"^{name.split()[0]} must be .*, got {value}"):
        MORE_THAN_NOTHING[name](path, value)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30).filter(lambda counts: sum(counts) > 0), st.data())
def test_a_part_of_a_workload_says_of_its_tuples_what_the_whole_says(counts: list[int], data: st.DataObject) -> None:
    whole = Arrivals(tuple(float(n) for n in range(len(counts) + 1)), (0.0, *np.cumsum(counts).astype(float).tolist()))
    first = data.draw(st.integers(0, whole.total - 1))
    stop = data.draw(st.integers(first + 1, whole.total))
    part = whole.part(first, stop)
    assert part.due_times(first, stop).tolist() == whole.due_times(first, stop).tolist()
    for second in np.linspace(0, len(counts), 17):
        seen = min(max(part.due_by(second), first), stop)
        assert seen == min(max(whole.due_by(second), first), stop)
