"""The PSPS paper's numbers, from samples made by hand."""

import pytest

from elastream.scoring import Sample, Series
from elastream.scoring.metrics import mean_replicas, saved_resources, throughput_degradation


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
    assert saved_resources(made, {"a": 8, "b": 8}) == 1 - 6 / 16
    assert saved_resources(made, {"a": 8, "b": 8}, r_over=12) == 0.5
    assert saved_resources(made, {}) == 0.0


def test_degradation_is_the_mean_of_the_intervals() -> None:
    made = series(
        source=[step(5, 5, entered=100), step(10, 5, entered=100), step(15, 5, entered=50)],
        sink=[step(5, 5, finished=100), step(10, 5, finished=60), step(15, 5, finished=90)],
    )
    # 0, 40 of 100 behind, then 40 of 50 ahead.
    assert throughput_degradation(made, 5.0) == pytest.approx((0 + 0.4 + 0.8) / 3)


def test_degradation_leaves_out_intervals_without_input_and_the_unfinished_last_one() -> None:
    made = series(
        source=[step(5, 5, entered=100), step(10, 5), step(12, 2, entered=1), step(15, 3)],
        sink=[step(5, 5, finished=50), step(10, 5, finished=50), step(12, 2), step(15, 3, finished=1)],
    )
    assert throughput_degradation(made, 5.0) == pytest.approx(0.5)
    assert throughput_degradation(series(), 5.0) == 0.0
    assert throughput_degradation(series(a=[step(1, 1, entered=5)]), 5.0) == 0.0


def test_a_tick_that_ends_in_another_interval_is_shared_between_the_two() -> None:
    made = series(
        source=[step(4, 4, entered=40), step(6, 2, entered=20), step(10, 4, entered=40)],
        sink=[step(4, 4, finished=40), step(6, 2, finished=20), step(10, 4, finished=40)],
    )
    assert throughput_degradation(made, 5.0) == pytest.approx(0.0)
