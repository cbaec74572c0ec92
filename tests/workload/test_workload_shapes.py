"""The shapes of a workload: ramp, steps, sine and day."""

from collections.abc import Callable

import numpy as np
import pytest
from arrivals import PATIENT
from hypothesis import given
from hypothesis import strategies as st

from elastream.errors import SettingError
from elastream.workload import Arrivals, daily, ramp, sine, steps


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
    assert arrivals.per_second(6.0) == 0.0 and arrivals.per_second(18.0) == pytest.approx(200, rel=0.01)


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
