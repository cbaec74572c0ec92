"""When tuples are due: at a constant rate, by a formula, and in a part of a workload."""

import numpy as np
import pytest
from arrivals import PATIENT, any_arrivals
from hypothesis import given
from hypothesis import strategies as st

from elastream.errors import SettingError
from elastream.workload import Arrivals, constant, formula, load_trace


@PATIENT
@given(arrivals=any_arrivals(), data=st.data())
def test_a_tuple_is_due_at_its_time_and_not_before(arrivals: Arrivals, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, arrivals.total - 1))
    (second,) = arrivals.due_times(number, number + 1)
    assert 0 <= second <= arrivals.seconds
    assert arrivals.due_by(float(second)) >= number + 1
    assert arrivals.due_by(float(second) - 1e-6) <= number


@PATIENT
@given(arrivals=any_arrivals(), share=st.floats(0, 1))
def test_what_is_due_by_a_second_are_the_tuples_with_a_time_up_to_it(arrivals: Arrivals, share: float) -> None:
    second = share * arrivals.seconds
    times = arrivals.due_times(0, arrivals.total)
    # A tuple due within a billionth of a second of the question may fall to either side.
    assert np.sum(times <= second - 1e-9) <= arrivals.due_by(second) <= np.sum(times <= second + 1e-9)


@PATIENT
@given(arrivals=any_arrivals(), share=st.floats(0, 1))
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


def test_a_part_keeps_the_keys_of_its_tuples_small() -> None:
    whole = load_trace("worldcup98_matchday", speed=720, scale=0.001)
    part = whole.part(5000, 5100)
    assert part.keys is whole.keys
    assert len(part.ends_s) < 10
