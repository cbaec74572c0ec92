"""AuTraScale's Bayesian optimisation: first samples, the Gaussian process, expected improvement, and transfer between rates."""

from dataclasses import replace

import numpy as np
import pytest
from autrascale_cases import GOAL, SPACES
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.policies.autrascale import BenefitModel, Sample
from elastream.policies.autrascale.bootstrap import bootstrap_sizes
from elastream.policies.autrascale.improvement import expected_improvement, most_promising
from elastream.policies.autrascale.score_model import ScoreModel
from elastream.policies.autrascale.surrogate import NOISE, Surrogate
from elastream.policies.autrascale.transfer import with_estimates
from elastream_lab.bench.papers.overhead import bench_overhead, overhead_table


def test_first_samples_are_all_alike_and_then_each_alone_at_its_most() -> None:
    made = bootstrap_sizes((3, 4, 12, 10), (40, 40, 40, 40), 6)
    assert [sizes[0] for sizes in made[:6]] == [12, 18, 23, 29, 34, 40]
    assert all(len(set(sizes)) == 1 for sizes in made[:6])
    assert made[6:] == ((40, 4, 12, 10), (3, 40, 12, 10), (3, 4, 40, 10), (3, 4, 12, 40))


@given(space=SPACES, alike=st.integers(2, 8))
def test_first_samples_are_within_the_space_and_each_is_there_once(space: list[tuple[int, int]], alike: int) -> None:
    base, most = tuple(least for least, _ in space), tuple(least + width for least, width in space)
    made = bootstrap_sizes(base, most, alike)
    assert len(set(made)) == len(made) <= alike + len(base)
    for sizes in made:
        assert all(least <= size <= top for least, size, top in zip(base, sizes, most, strict=True))


def test_expected_improvement_is_that_of_the_normal_distribution() -> None:
    mean, deviation = np.array([0.5, 0.9, 0.9]), np.array([0.1, 0.1, 0.0])
    found = expected_improvement(mean, deviation, best=0.8, xi=0.0)
    # By hand: Φ(-3) = 0.00135, φ(-3) = 0.004432; Φ(1) = 0.841345, φ(1) = 0.241971.
    assert found[:2] == pytest.approx([-0.3 * 0.00135 + 0.1 * 0.004432, 0.1 * 0.841345 + 0.1 * 0.241971], abs=1e-6)
    assert found[2] == 0.0
    draws = np.random.default_rng(1).normal(0.9, 0.1, 200_000)
    assert found[1] == pytest.approx(np.maximum(draws - 0.8, 0).mean(), rel=0.01)


@given(mean=st.floats(-1, 2), deviation=st.floats(0.001, 1), best=st.floats(0, 1), xi=st.floats(0, 0.5))
def test_improvement_is_never_negative_and_falls_with_xi(mean: float, deviation: float, best: float, xi: float) -> None:
    def of(asked: float) -> float:
        return float(expected_improvement(np.array([mean]), np.array([deviation]), best, asked)[0])

    assert of(xi) >= -1e-12
    assert of(xi) <= of(0.0) + 1e-12


def test_the_process_goes_through_its_samples_and_doubts_what_is_far_from_them() -> None:
    sizes, scores = [(1, 1), (10, 1), (1, 10), (10, 10)], [0.4, 0.7, 0.5, 0.8]
    model = Surrogate((1, 1), (20, 20), sizes, scores)
    mean, deviation = model.predict([*sizes, (20, 20)])
    assert mean[:4] == pytest.approx(scores, abs=0.02)
    assert deviation[4] > 2 * deviation[:4].max()


@settings(max_examples=15, deadline=None)
@given(space=SPACES, seed=st.integers(0, 5))
def test_what_is_promised_is_in_the_space_untried_and_the_same_again(space: list[tuple[int, int]], seed: int) -> None:
    base, most = tuple(least for least, _ in space), tuple(least + width for least, width in space)
    tried = bootstrap_sizes(base, most, 3)
    model = ScoreModel(GOAL, base, most, [(sizes, 0.1 * number) for number, sizes in enumerate(tried)])

    def found() -> object:
        return most_promising(model, base, most, set(tried), tried[0], 0.8, 0.01, np.random.default_rng(seed))

    promise = found()
    assert promise == found()
    if promise is None:
        assert np.prod([width + 1 for _, width in space]) <= len(tried)
    else:
        assert promise.sizes not in tried  # type: ignore[attr-defined]
        assert all(a <= b <= c for a, b, c in zip(base, promise.sizes, most, strict=True))  # type: ignore[attr-defined]


def test_the_process_answers_as_scikit_learn_does() -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    sizes, values = [(1, 1), (10, 1), (1, 10), (10, 10), (5, 7)], [0.4, 0.7, 0.5, 0.8, 0.9]
    model = Surrogate((1, 1), (20, 20), sizes, values)
    kernel = Matern(length_scale=model._lengths, nu=2.5)
    theirs = GaussianProcessRegressor(kernel=kernel, alpha=NOISE, optimizer=None, normalize_y=True)
    theirs.fit((1 - 1 / np.asarray(sizes)) / 0.95, values)
    asked = [(3, 4), (20, 20), (10, 1)]
    mean, deviation = theirs.predict((1 - 1 / np.asarray(asked)) / 0.95, return_std=True)
    assert model.predict(asked)[0] == pytest.approx(mean)
    assert model.predict(asked)[1] == pytest.approx(deviation)


def test_the_moments_of_a_score_follow_from_those_of_the_latency() -> None:
    base, most = (2, 2), (10, 10)
    model = ScoreModel(GOAL, base, most, [((2, 2), 1.2), ((10, 10), -0.8), ((2, 10), 0.3)])
    rows = np.array([(2, 2), (6, 6), (9, 3), (10, 10)])
    late, deviation = model._late.predict(rows)
    draws = np.random.default_rng(1).normal(size=(400_000, 1)) * deviation + late
    lean = (np.array(base) / rows).mean(axis=1)
    scores = 0.8 * np.minimum(1.0, np.exp(-draws)) + 0.2 * lean
    mean, spread = model.predict(rows)
    assert mean == pytest.approx(scores.mean(axis=0), abs=2e-3)
    assert spread == pytest.approx(scores.std(axis=0), abs=2e-3)
    assert model.keeps(rows) == pytest.approx((draws <= 0).mean(axis=0), abs=3e-3)


def test_an_estimate_is_the_old_model_and_what_it_was_wrong_by() -> None:
    base, most = (2, 2), (10, 10)
    first = bootstrap_sizes(base, most, 3)
    old = BenefitModel(("a", "b"), 80.0, base, most, tuple(Sample(s, 0.9 / min(s), 80.0) for s in first))
    # Everything takes twice as long: one real sample tells.
    new = replace(old, samples=(Sample(first[0], 1.8 / min(first[0]), 80.0),))
    data = with_estimates(GOAL, old, new, first)
    assert [sizes for sizes, _ in data] == list(first)
    assert [late for _, late in data] == pytest.approx([np.log(1.8 / min(s) / 0.3) for s in first], abs=0.1)


def test_at_twice_the_rate_twice_the_replicas_are_expected_to_do_as_well() -> None:
    sizes = [(2, 2), (3, 3), (4, 4), (5, 5), (6, 6)]
    old = BenefitModel(("a", "b"), 80.0, (2, 2), (12, 12), tuple(Sample(s, 1.2 / s[0], 80.0) for s in sizes))
    new = replace(old, per_second=160.0, base=(4, 4), samples=(Sample((4, 4), 0.6, 160.0),))
    data = dict(with_estimates(GOAL, old, new, [(8, 8), (12, 12)]))
    assert data[(8, 8)] == pytest.approx(np.log(0.3 / 0.3), abs=0.1)
    assert data[(12, 12)] == pytest.approx(np.log(0.2 / 0.3), abs=0.1)


def test_the_overhead_of_2_to_10_operators_is_far_below_an_interval() -> None:
    found = bench_overhead()
    assert [overhead.operators for overhead in found] == [2, 4, 6, 8, 10]
    assert all(0 < seconds < 1 for its in found for seconds in (its.train_s, its.use_s, its.transfer_s))
    assert "| 10 |" in overhead_table(found)
