"""Volume spikes: more tuples for a while, between four corners."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spikes import PATIENT, outlines

from elastream.errors import SettingError
from elastream.workload import Arrivals, VolumeSpike, constant, formula, with_spikes


@st.composite
def _volume_spikes(draw: st.DrawFn) -> VolumeSpike:
    return VolumeSpike(**draw(outlines()), magnitude=draw(st.floats(1, 20)))


@st.composite
def _workloads(draw: st.DrawFn) -> Arrivals:
    """Runs of 100 s in ten uneven steps."""
    rates = draw(st.lists(st.integers(0, 400), min_size=10, max_size=10).filter(any))
    cuts = draw(st.lists(st.integers(1, 999), min_size=9, max_size=9, unique=True))
    ends = np.asarray([0, *sorted(cuts), 1000]) / 10
    return Arrivals(tuple(ends.tolist()), (0.0, *np.cumsum(np.diff(ends) * rates).tolist()))


def test_a_spike_rises_stays_and_falls_between_its_four_corners() -> None:
    spike = VolumeSpike(at_s=60, time_to_peak_s=5, peak_s=10, duration_s=35, magnitude=4)
    assert spike.corners_s == (60, 65, 75, 95)
    seconds = np.asarray([0, 60, 62.5, 65, 70, 75, 80, 85, 95, 99])
    assert spike.multiplier(seconds).tolist() == [1, 1, 2.5, 4, 4, 4, 3.25, 2.5, 1, 1]


def test_without_a_length_of_the_peak_half_of_what_is_left_is_peak_and_half_is_decay() -> None:
    assert VolumeSpike(at_s=60, time_to_peak_s=10, duration_s=30, magnitude=4).corners_s == (60, 70, 80, 90)


def test_a_spike_without_time_to_peak_is_there_at_once() -> None:
    arrivals = with_spikes(constant(100, 100), [VolumeSpike(at_s=20, duration_s=10, peak_s=10, magnitude=3)])
    assert [arrivals.per_second(second) for second in (19.9, 20, 29.9, 30.1)] == pytest.approx([100, 300, 300, 100])
    assert arrivals.total == 100 * 100 + 200 * 10


def test_a_spike_on_a_constant_rate_adds_its_area() -> None:
    spike = VolumeSpike(at_s=20, time_to_peak_s=10, peak_s=10, duration_s=40, magnitude=5)
    arrivals = with_spikes(constant(100, 100), [spike])
    # Half of ten seconds, ten seconds, half of twenty seconds, each with four times as many tuples more.
    assert arrivals.total == 100 * 100 + 4 * 100 * (5 + 10 + 10)
    assert arrivals.due_by(20) == 2000
    assert arrivals.due_by(30) == 2000 + 1000 + 4 * 100 * 5
    assert arrivals.per_second(35) == pytest.approx(500)


@PATIENT
@given(spike=_volume_spikes())
def test_the_multiplier_is_one_outside_and_exactly_the_magnitude_at_the_peak(spike: VolumeSpike) -> None:
    onset, peak, falls, over = spike.corners_s
    assert onset <= peak <= falls <= over
    at_peak = spike.multiplier(np.asarray([peak, falls]))
    assert at_peak.tolist() == [spike.magnitude, spike.magnitude]
    assert spike.multiplier(np.asarray([onset - 1e-6, over + 1e-6, -1.0, 1e9])).tolist() == [1, 1, 1, 1]
    between = spike.multiplier(np.linspace(onset, over, 57))
    assert np.all((between >= 1) & (between <= spike.magnitude))


@PATIENT
@given(arrivals=_workloads(), spikes=st.lists(_volume_spikes(), min_size=1, max_size=3))
def test_outside_its_spikes_a_workload_is_what_it_was(arrivals: Arrivals, spikes: list[VolumeSpike]) -> None:
    spiked = with_spikes(arrivals, spikes)
    assert spiked.seconds == arrivals.seconds
    for second in np.linspace(0.05, 99.95, 97):
        if all(second < spike.at_s - 1e-3 or second > spike.corners_s[3] + 1e-3 for spike in spikes):
            assert spiked.per_second(second) == pytest.approx(arrivals.per_second(second), rel=1e-6, abs=1e-6)


@PATIENT
@given(arrivals=_workloads(), spikes=st.lists(_volume_spikes(), min_size=1, max_size=3))
def test_the_total_is_the_integral_of_rate_times_multiplier(arrivals: Arrivals, spikes: list[VolumeSpike]) -> None:
    spiked = with_spikes(arrivals, spikes)
    corners = [corner for spike in spikes for corner in spike.corners_s if corner < 100]
    ends = np.unique([*arrivals.ends_s, *corners])
    # Between two of these the rate is constant and the multiplier straight: its value in the middle is its mean.
    middles, lengths = (ends[:-1] + ends[1:]) / 2, np.diff(ends)
    added = sum((spike.multiplier(middles) - 1 for spike in spikes), np.zeros(len(middles)))
    rates = np.asarray([arrivals.per_second(second) for second in middles])
    assert spiked.counts[-1] == pytest.approx(float(np.sum(rates * (1 + added) * lengths)), rel=1e-6)
    assert np.all(np.diff(spiked.counts) >= 0)
    assert np.all(np.diff(spiked.ends_s) > 0)


@PATIENT
@given(spike=_volume_spikes(), rate=st.integers(1, 500))
def test_a_peak_that_lasts_has_the_magnitude_times_the_normal_rate(spike: VolumeSpike, rate: int) -> None:
    _, peak, falls, _ = spike.corners_s
    if falls - peak > 0.01 and falls < 100:
        spiked = with_spikes(constant(rate, 100), [spike])
        assert spiked.per_second((peak + falls) / 2) == pytest.approx(rate * spike.magnitude, rel=1e-6)


def test_what_overlapping_spikes_add_adds_up() -> None:
    one = VolumeSpike(at_s=10, duration_s=40, peak_s=40, magnitude=3)
    two = VolumeSpike(at_s=30, duration_s=40, peak_s=40, magnitude=4)
    for spikes in ([one, two], [two, one]):
        arrivals = with_spikes(constant(100, 100), spikes)
        assert [round(arrivals.per_second(second), 6) for second in (5, 20, 40, 60, 80)] == [100, 300, 600, 400, 100]
    # One after the other is another thing: the second one multiplies what the first one has made.
    after = with_spikes(with_spikes(constant(100, 100), [one]), [two])
    assert after.per_second(40) == pytest.approx(1200)


def test_a_spike_that_outlasts_the_workload_is_cut_off() -> None:
    arrivals = with_spikes(constant(100, 60), [VolumeSpike(at_s=50, duration_s=100, peak_s=100, magnitude=2)])
    assert (arrivals.seconds, arrivals.total) == (60, 60 * 100 + 10 * 100)


def test_a_workload_without_spikes_is_the_same_workload() -> None:
    arrivals = formula(lambda t: 50 + t, 10)
    assert with_spikes(arrivals, []) == arrivals


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"magnitude": 0.5}, "magnitude must be 1 or more, the rate at the peak over the normal rate, got 0.5"),
        (
            {"magnitude": float("inf")},
            "magnitude must be 1 or more, the rate at the peak over the normal rate, got inf",
        ),
        ({"at_s": -1.0}, "at_s must be 0 or more, got -1.0"),
        ({"duration_s": 0.0}, "duration_s must be more than 0, got 0.0"),
        ({"duration_s": float("nan")}, "duration_s must be more than 0, got nan"),
        ({"time_to_peak_s": 31.0}, "time_to_peak_s must be from 0 to duration_s=30, got 31.0"),
        ({"peak_s": 26.0}, "peak_s must be from 0 to duration_s - time_to_peak_s = 25, got 26.0"),
    ],
)
def test_a_spike_that_cannot_be_says_why(values: dict[str, float], said: str) -> None:
    right = {"at_s": 10.0, "duration_s": 30.0, "time_to_peak_s": 5.0, "magnitude": 2.0}
    with pytest.raises(SettingError) as caught:
        VolumeSpike(**{**right, **values})
    assert str(caught.value) == f"spike at_s={values.get('at_s', 10.0):g}: {said}"


def test_a_spike_after_the_end_is_refused() -> None:
    with pytest.raises(
        SettingError, match=r"^spike at_s=60: the workload is over after 60 s; at_s must be less, in seconds of"
    ):
        with_spikes(constant(1, 60), [VolumeSpike(at_s=60, duration_s=1, magnitude=2)])
