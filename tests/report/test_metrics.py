"""The PSPS paper's numbers, from samples made by hand."""

import numpy as np
import pytest

from elastream.report import Sample, Series
from elastream.report.scores.balance import LoadSample, level_sample, load_summary
from elastream.report.scores.correlation import pearson, spearman
from elastream.report.scores.metrics import (
    health,
    lowest_health,
    mean_replicas,
    replicas_for_peak,
    saved_resources,
    throughput_degradation,
)
from elastream.rules import load_balance, load_ratio


def series(**operators: list[Sample]) -> Series:
    made = Series()
    for name, samples in operators.items():
        for sample in samples:
            made.add(name, sample)
    return made


def step(t_s: float, seconds: float, *, replicas: int = 1, entered: int = 0, finished: int = 0) -> Sample:
    return Sample(t_s, seconds, 0, 0, 0, 0, replicas, 0.0, entered, finished)


def test_a_long_tick_counts_for_long() -> None:
    assert mean_replicas([step(1, 1, replicas=1), step(4, 3, replicas=5)]) == 4.0
    assert mean_replicas([]) == 0.0


def test_saved_resources_are_measured_against_a_run_sized_for_the_peak() -> None:
    made = series(a=[step(1, 1, replicas=2)], b=[step(1, 1, replicas=4)], out=[step(1, 1, replicas=9)])
    assert saved_resources(made, {"a": 8, "b": 8}, 16) == 1 - 6 / 16
    assert saved_resources(made, {"a": 8, "b": 8}, 12) == 0.5
    assert saved_resources(made, {}, 0) == 0.0


def test_degradation_is_the_mean_of_the_intervals() -> None:
    made = series(
        source=[step(5, 5, entered=100), step(10, 5, entered=100), step(15, 5, entered=50)],
        sink=[step(5, 5, finished=100), step(10, 5, finished=60), step(15, 5, finished=90)],
    )
    # 0, 40 of 100 behind, then 40 of 50 ahead.
    assert throughput_degradation(made, ("source",), 5.0) == pytest.approx((0 + 0.4 + 0.8) / 3)


def test_degradation_leaves_out_intervals_without_input_and_the_unfinished_last_one() -> None:
    made = series(
        source=[step(5, 5, entered=100), step(10, 5), step(12, 2, entered=1), step(15, 3)],
        sink=[step(5, 5, finished=50), step(10, 5, finished=50), step(12, 2), step(15, 3, finished=1)],
    )
    assert throughput_degradation(made, ("source",), 5.0) == pytest.approx(0.5)
    assert throughput_degradation(series(), (), 5.0) == 0.0
    assert throughput_degradation(series(a=[step(1, 1, entered=5)]), ("a",), 5.0) == 0.0


def test_a_tick_that_ends_in_another_interval_is_shared_between_the_two() -> None:
    made = series(
        source=[step(4, 4, entered=40), step(6, 2, entered=20), step(10, 4, entered=40)],
        sink=[step(4, 4, finished=40), step(6, 2, finished=20), step(10, 4, finished=40)],
    )
    assert throughput_degradation(made, ("source",), 5.0) == pytest.approx(0.0)


def test_where_a_flow_splits_a_tuple_counts_as_often_as_it_was_split() -> None:
    # Each tuple becomes two at the splitter, one interval after it entered; both finish an interval later.
    made = series(
        source=[step(5, 5, entered=100), step(10, 5, entered=100), step(15, 5, entered=100), step(20, 5)],
        split=[step(5, 5), step(10, 5, entered=100), step(15, 5, entered=100), step(20, 5, entered=100)],
        sink=[step(5, 5), step(10, 5, finished=200), step(15, 5, finished=200), step(20, 5, finished=200)],
    )
    # Nothing comes out in the first interval, then as much as goes in.
    assert throughput_degradation(made, ("source",), 5.0) == pytest.approx((1 + 0 + 0) / 3)


def served(t_s: float, received: int, processed: int, busy_s: float) -> Sample:
    return Sample(t_s, 5.0, received, processed, 0, 0, 1, busy_s)


def test_the_replicas_for_the_peak_serve_its_interval_without_a_queue() -> None:
    made = series(
        source=[step(5, 5, entered=100), step(10, 5, entered=1000), step(15, 5, entered=100)],
        # Half of what enters, 20 ms a tuple: 500 x 0.02 s = 10 s of work in 5 s.
        work=[served(5, 50, 50, 1.0), served(10, 500, 250, 5.0), served(15, 50, 300, 6.0)],
    )
    pools = {"work": 8}
    assert replicas_for_peak(made, ("source",), pools, 5.0) == 2
    assert replicas_for_peak(made, ("source",), {"work": 1}, 5.0) == 1
    # Nothing came, or nothing was served: all that there are.
    assert replicas_for_peak(series(), ("source",), pools, 5.0) == 8
    assert replicas_for_peak(made, ("source",), {"work": 8, "idle": 3}, 5.0) == 5


def test_health_is_processed_per_received() -> None:
    samples = [served(5, 100, 90, 0), served(10, 100, 40, 0), served(15, 0, 70, 0)]
    assert health(samples) == 1.0
    assert health(samples[:2]) == 0.65
    assert lowest_health(samples, 5.0) == pytest.approx(0.4)
    assert health([]) == lowest_health([], 5.0) == 1.0


def test_load_ratio_and_balance_are_those_of_dr_stream() -> None:
    assert load_ratio(30, 40) == 0.75
    assert load_balance([0.5, 0.5, 0.5]) == 0.0
    # Means 0.5; distances 0.5, 0.5, 0.3, 0.3.
    assert load_balance([0.0, 1.0, 0.2, 0.8]) == pytest.approx(0.4)
    assert load_balance([]) == 0.0
    uneven, even = level_sample([0.0, 1.0]), level_sample([0.5, 0.5])
    summary = load_summary([LoadSample(5.0, uneven, even, even), LoadSample(10.0, even, even)])
    level = {"ratio_mean": 0.5, "ratio_max": 0.5, "fullest_mean": 0.5, "lb_mean": 0.0, "lb_max": 0.0}
    assert summary == {
        "ratio_mean": 0.5,
        "ratio_max": 1.0,
        "fullest_mean": 0.75,
        "lb_mean": 0.25,
        "lb_max": 0.5,
        "hosts": level,
        "machines": level,
    }
    assert load_summary([]) is None


def test_the_coefficients_of_pearson_and_spearman() -> None:
    a = np.array([1.0, 2.0, 3.0, 4.0])
    assert pearson(a, 3 * a + 1) == pytest.approx(1.0)
    assert pearson(a, -a) == pytest.approx(-1.0)
    # Always growing, not in a line.
    assert spearman(a, np.exp(a)) == pytest.approx(1.0)
    assert pearson(a, np.exp(a)) == pytest.approx(84.17 / np.sqrt(5 * 1649), abs=5e-4)
    # By hand: ranks 1, 2.5, 2.5, 4 against 1, 3, 2, 4.
    assert spearman(np.array([1.0, 5.0, 5.0, 9.0]), np.array([1.0, 7.0, 3.0, 8.0])) == pytest.approx(
        4.5 / np.sqrt(22.5)
    )
    assert pearson(a, np.ones(4)) is None
    assert spearman(a[:1], a[:1]) is None
