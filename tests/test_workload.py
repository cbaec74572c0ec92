"""When tuples are due: shapes, formulas and trace files, and the errors that name the line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.errors import SettingError
from elastream.workload import (
    Arrivals,
    constant,
    daily,
    formula,
    from_csv,
    load_trace,
    provenance,
    ramp,
    sine,
    steps,
    to_csv,
    trace_names,
)

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


# -- shapes


def test_a_ramp_goes_straight_from_one_rate_to_the_other() -> None:
    arrivals = ramp(start=100, end=300, seconds=10)
    assert arrivals.total == 2000
    assert arrivals.due_by(5) == 750
    assert [round(arrivals.per_second(second)) for second in (0, 5, 9.999)] == [100, 200, 300]


def test_a_ramp_may_go_down_to_nothing() -> None:
    arrivals = ramp(start=300, end=0, seconds=4)
    assert arrivals.total == 600
    assert np.all(np.diff(arrivals.rates()) < 0)


def test_steps_share_the_time_among_them() -> None:
    arrivals = steps([100, 500, 0, 100], seconds=60)
    assert arrivals.ends_s == (0.0, 15.0, 30.0, 45.0, 60.0)
    assert arrivals.counts == (0.0, 1500.0, 9000.0, 9000.0, 10500.0)


def test_a_sine_begins_low_and_is_high_after_half_a_period() -> None:
    arrivals = sine(low=100, high=900, period_s=20, seconds=50)
    assert arrivals.per_second(0) == pytest.approx(100, abs=1)
    assert arrivals.per_second(10) == pytest.approx(900, abs=1)
    assert arrivals.per_second(20) == pytest.approx(100, abs=1)
    assert arrivals.per_second(5.1) == pytest.approx(500, abs=20)
    # Whole periods have the mean rate; the half that is left ends high.
    assert arrivals.due_by(40) == 500 * 40
    assert arrivals.total == 500 * 50


@PATIENT
@given(
    low=st.integers(0, 500),
    more=st.integers(1, 500),
    period_s=st.sampled_from([0.7, 3.0, 10.0, 900.0]),
    seconds=st.sampled_from([0.5, 7.0, 60.0]),
)
def test_a_sine_has_as_many_tuples_as_the_area_under_it(low: int, more: int, period_s: float, seconds: float) -> None:
    arrivals = sine(low, low + more, period_s, seconds)
    turn = 2 * np.pi / period_s
    area = (low + more / 2) * seconds - more / 2 * np.sin(turn * seconds) / turn
    assert arrivals.counts[-1] == pytest.approx(area)
    assert arrivals.rates().min() >= low * (1 - 1e-9)
    assert arrivals.rates().max() <= (low + more) * (1 + 1e-9)


def test_a_day_has_a_peak_in_the_morning_and_a_higher_one_in_the_evening() -> None:
    arrivals = daily(per_second=10)
    assert (arrivals.seconds, arrivals.total) == (86_400, 864_000)
    by_hour = [arrivals.per_second(hour * 3600 + 1800) for hour in range(24)]
    assert int(np.argmin(by_hour)) == 4
    assert int(np.argmax(by_hour[:14])) == 9
    assert int(np.argmax(by_hour)) == 20
    # No jumps, also not from the end of a day to the beginning of the next one.
    assert np.abs(np.diff(arrivals.rates(), append=arrivals.rates()[0])).max() < 0.06 * 10


def test_days_are_compressed_into_the_seconds_of_the_run_with_the_same_mean_rate() -> None:
    long, short = daily(per_second=50), daily(per_second=50, seconds=240, days=2)
    assert short.total == 50 * 240
    assert short.rates()[:240] == pytest.approx(long.rates())
    assert short.rates()[240:] == pytest.approx(long.rates())


def test_a_day_follows_the_weights_of_its_hours() -> None:
    arrivals = daily(per_second=100, seconds=24, weights=[0] * 12 + [1] * 12)
    assert arrivals.total == 2400
    assert (arrivals.per_second(6.0), arrivals.per_second(18.0)) == (0.0, pytest.approx(200, rel=0.01))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ramp(-1, 5, 10), "ramp: start must be 0 or more and finite, got -1"),
        (lambda: ramp(0, 0, 10), "ramp: start and end must not all be 0, got nothing but zeros"),
        (lambda: ramp(0, 5, 0), "seconds must be more than 0 and finite, got 0"),
        (lambda: steps([], 10), "steps: rates must be one rate or more, got none"),
        (lambda: steps([1, float("nan")], 10), "steps: rates, number 2 must be 0 or more and finite, got nan"),
        (lambda: sine(10, 5, 1, 10), "sine: high must be low=10 or more, got 5"),
        (lambda: sine(1, 5, 0, 10), "period_s must be more than 0 and finite, got 0"),
        (lambda: sine(1, 5, 1e-6, 10), "sine: period_s must be 0.001 or more for seconds=10, got 1e-06"),
        (lambda: daily(0), "per_second must be more than 0 and finite, got 0"),
        (lambda: daily(5, days=0), "daily: days must be a whole number from 1 on, got 0"),
        (lambda: daily(5, weights=[1, 2]), "daily: weights must be 24, one for each hour, got 2"),
        (lambda: daily(5, weights=[-3] * 24), "daily: weights, hour 0 must be 0 or more and finite, got -3"),
    ],
)
def test_a_shape_says_which_parameter_is_wrong(make: Callable[[], Arrivals], said: str) -> None:
    with pytest.raises(SettingError) as caught:
        make()
    assert str(caught.value) == said


# -- trace files


def _trace(folder: Path, *lines: str, header: str = "t_seconds,events") -> Path:
    path = folder / "trace.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def test_a_trace_file_says_how_many_come_from_each_line_to_the_next(tmp_path: Path) -> None:
    arrivals = from_csv(_trace(tmp_path, "0,10", "2,0", "4,30", "6,40"))
    # The last step is as long as the others.
    assert arrivals.ends_s == (0.0, 2.0, 4.0, 6.0, 8.0)
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
    path = _trace(tmp_path, *lines)
    assert _refusal(path) == f"trace {path}, line {number}: {said}"


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\r\n\r\n"])
def test_blank_lines_at_the_end_of_a_trace_are_no_error(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(f"t_seconds,events\n0,1\n1,2{ending}".encode())
    assert from_csv(path).counts == (0.0, 1.0, 3.0)


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


def test_steps_that_differ_by_rounding_only_are_no_gap(tmp_path: Path) -> None:
    path = _trace(tmp_path, *(f"{1.7e9 + number / 10:.1f},1" for number in range(50)))
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


# -- writing a trace, and the traces that ship


def test_a_workload_with_a_constant_step_is_written_with_that_step(tmp_path: Path) -> None:
    path = _trace(tmp_path, "0,10", "60,0", "120,30")
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
@given(arrivals=_arrivals(), step_s=st.sampled_from([0.25, 1.0, 7.0]))
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


@pytest.mark.parametrize("name", trace_names())
def test_a_shipped_trace_loads_is_small_and_says_where_it_is_from(name: str) -> None:
    trace = load_trace(name)
    assert trace.total > 10_000
    assert np.ptp(np.diff(trace.ends_s)) == 0
    origin = provenance(name)
    assert len(origin.what) > 30
    assert any(licence in origin.source for licence in ("MIT", "CC-BY-4.0", "free to redistribute"))


@pytest.mark.parametrize(
    ("name", "total", "seconds"),
    [
        ("aapl_tweets_spike", 118_140, 86_400),
        ("azure_llm_conv", 19_366, 3_502),
        ("covid_tweets", 26_022, 2_700),
        ("elb_requests", 117_154, 604_800),
        ("nasa95_launchday", 134_204, 86_400),
        ("worldcup98_matchday", 37_738_625, 43_200),
    ],
)
def test_a_shipped_trace_has_the_tuples_of_its_original(name: str, total: int, seconds: float) -> None:
    trace = load_trace(name)
    assert (trace.total, trace.seconds) == (total, seconds)


def test_a_trace_without_a_row_in_the_table_is_named() -> None:
    with pytest.raises(SettingError, match=r"^trace 'mars': no row in the table of shipped traces, which are aapl_"):
        provenance("mars")


def test_a_part_keeps_the_keys_of_its_tuples_small() -> None:
    whole = load_trace("worldcup98_matchday", speed=720, scale=0.001)
    part = whole.part(5000, 5100)
    assert part.keys is whole.keys
    assert len(part.ends_s) < 10
