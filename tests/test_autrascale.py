"""AuTraScale: golden values of the paper, properties of its parts, and what the policy does at the edges."""

import json
from dataclasses import replace
from math import inf, isinf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream import Topology, sources
from elastream.bench.overhead import bench_overhead, overhead_table
from elastream.cli.main import main
from elastream.control import Observation, Proposal
from elastream.errors import Damaged, SettingError
from elastream.lanes import Store
from elastream.policies import make_policy
from elastream.policies.autrascale import AuTraScale, BenefitModel, Sample
from elastream.policies.autrascale.base_search import BaseSearch, Ran
from elastream.policies.autrascale.bootstrap import bootstrap_sizes
from elastream.policies.autrascale.improvement import expected_improvement, most_promising
from elastream.policies.autrascale.models import nearest
from elastream.policies.autrascale.rate_watch import RateWatch
from elastream.policies.autrascale.score import Goal
from elastream.policies.autrascale.score_model import ScoreModel
from elastream.policies.autrascale.search import Search, Trial
from elastream.policies.autrascale.settling import Interval, Queues, Settling
from elastream.policies.autrascale.surrogate import NOISE, Surrogate
from elastream.policies.autrascale.transfer import with_estimates
from elastream.policies.autrascale.true_rates import base_sizes, true_per_s
from elastream.policies.flow import Flow
from elastream.policies.model_library import ModelLibrary, decode, encode
from elastream.testing import LocalEngine, observation, operator, source
from elastream.workload import constant

GOAL = Goal(0.3)
SPACES = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 30)), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("base", "sizes", "score"),
    [
        ((3, 4, 12, 10), (7, 8, 12, 38), 0.9096),
        ((3, 4, 12, 10), (10, 16, 12, 10), 0.9275),
        ((4, 2, 1, 1, 34), (4, 2, 1, 1, 40), 0.994),
        ((4, 2, 1, 1, 34), (22, 2, 1, 1, 36), 0.965),
    ],
)
def test_the_scores_of_tables_2_and_3(base: tuple[int, ...], sizes: tuple[int, ...], score: float) -> None:
    assert GOAL.score(0.2, sizes, base) == pytest.approx(score, abs=6e-4)
    assert GOAL.reached(0.2, sizes, base)
    assert not GOAL.reached(0.31, sizes, base)


def test_the_papers_threshold_of_0_9_is_twice_the_base() -> None:
    assert Goal(0.3, alpha=0.8, w=1.0).enough == pytest.approx(0.9)
    assert GOAL.reached(0.3, (6, 8), (3, 4)) and not GOAL.reached(0.3, (7, 8), (3, 4))


def test_a_latency_twice_the_target_has_half_its_share_and_one_without_bound_none() -> None:
    assert GOAL.score(0.6, (3, 4), (3, 4)) == pytest.approx(0.8 * 0.5 + 0.2)
    assert GOAL.score(inf, (3, 4), (3, 4)) == pytest.approx(0.2)


@given(space=SPACES, latency_s=st.floats(0.001, 100), more_s=st.floats(0, 10), which=st.integers(0, 5))
def test_the_score_falls_with_latency_and_with_replicas(
    space: list[tuple[int, int]], latency_s: float, more_s: float, which: int
) -> None:
    base = tuple(least for least, _ in space)
    sizes = tuple(least + width for least, width in space)
    score = GOAL.score(latency_s, sizes, base)
    assert 0 < score <= 1
    assert GOAL.score(latency_s + more_s, sizes, base) <= score
    place = which % len(sizes)
    assert GOAL.score(latency_s, (*sizes[:place], sizes[place] + 1, *sizes[place + 1 :]), base) < score


def line(*service_ms: float, per_s: int = 100, replicas: int = 1, most: int = 40) -> Observation:
    parts = [source("in", per_s)]
    for number, each_ms in enumerate(service_ms):
        before = parts[-1].operator
        parts.append(
            operator(f"O{number}", {before: per_s}, service_ms=each_ms, replicas=replicas, most=most, processed=per_s)
        )
    return observation(*parts)


def test_a_true_rate_is_records_over_useful_time() -> None:
    # 50 records in two seconds, half a second of them useful.
    assert true_per_s(operator("a", {"in": 50}, processed=50, busy_seconds=0.5)) == 100
    assert true_per_s(operator("a", {"in": 0}, service_ms=20)) == 50
    assert true_per_s(operator("a", {"in": 0}, service_ms=0)) == 0


def test_the_base_is_the_rate_over_true_rates_from_the_first_operator_on() -> None:
    assert base_sizes(line(16.6, 25, 100), Flow(), 100) == (2, 3, 10)
    assert base_sizes(line(16.6, 25, 100), Flow(), 250) == (5, 7, 25)
    # A fast operator passes on what it gets, and not what it could.
    assert base_sizes(line(0.1, 25), Flow(), 100) == (1, 3)


def test_behind_an_operator_at_its_most_only_what_it_can_serve_arrives() -> None:
    seen = line(100, 25)
    first = replace(seen.operators["O0"], most=5)
    assert base_sizes(replace(seen, operators=seen.operators | {"O0": first}), Flow(), 100) == (5, 2)


def test_the_base_counts_the_share_of_the_input_that_reaches_an_operator() -> None:
    seen = observation(
        source("in", 100),
        operator("a", {"in": 100}, service_ms=10),
        operator("b", {"a": 25}, service_ms=100),
    )
    assert base_sizes(seen, Flow(), 200) == (2, 5)


def test_the_search_for_the_base_stops_when_a_recommendation_comes_again() -> None:
    search = BaseSearch((3, 4))
    assert search.next(Ran((3, 4), 90.0, False), (4, 5)) == (4, 5)
    assert search.next(Ran((4, 5), 100.0, True), (4, 5)) is None
    assert search.base() == (4, 5)


def test_the_base_of_a_rate_that_cannot_be_reached_is_the_smallest_with_the_largest_throughput() -> None:
    # Figure 5 (b): Redis is the limit. p2 is chosen, though p4 is where the search ended.
    search = BaseSearch((2, 1, 1, 1, 10))
    assert search.next(Ran((2, 1, 1, 1, 10), 20e3, False), (4, 2, 1, 1, 34)) == (4, 2, 1, 1, 34)
    assert search.next(Ran((4, 2, 1, 1, 34), 34.9e3, False), (40, 1, 1, 1, 40)) == (40, 1, 1, 1, 40)
    assert search.next(Ran((40, 1, 1, 1, 40), 35e3, False), (40, 1, 1, 1, 40)) is None
    assert search.base() == (4, 2, 1, 1, 34)


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


def test_a_target_that_nothing_can_keep_is_given_up_once_the_most_was_measured() -> None:
    base, most = (2, 2), (10, 10)
    model = BenefitModel(("a", "b"), 80.0, base, most)
    search, reasons = Search(Goal(0.01)), []
    while isinstance(trial := search.next(model.with_sample(Sample(base, 0.9, 80.0)), None), Trial):
        model = model.with_sample(Sample(trial.sizes, 0.5 + 1 / min(trial.sizes), 80.0))
        reasons.append(trial.reason)
    assert len(reasons) <= len(bootstrap_sizes(base, most, search.alike))
    assert trial.reason.startswith("the target cannot be kept") and model.sample_of(most) is not None


def test_where_a_service_has_a_limit_the_best_are_the_leanest_with_the_largest_throughput() -> None:
    samples = (Sample((7, 40), inf, 349.0), Sample((40, 40), inf, 350.0), Sample((7, 20), inf, 230.0))
    model = BenefitModel(("a", "b"), 600.0, (7, 20), (40, 40), samples)
    assert Search(GOAL).best(model).sizes == (7, 40)


def test_a_search_is_told_step_by_step() -> None:
    policy = AuTraScale(latency_ms=300, plain=1)
    # Numbers of the simulator are numpy's; a step must be written as JSON all the same.
    seen = replace(line(16.6, 25, replicas=8), latency_mean_s=np.float64(0.9))
    steps = []
    for _ in range(12):
        proposal = policy.propose(seen)
        steps += [proposal.search] if proposal.search else []
        sizes = {want.operator: want.replicas for want in proposal.wants}
        seen = replace(
            seen,
            operators={n: replace(o, replicas=sizes.get(n, 1)) for n, o in seen.operators.items()},
            latency_mean_s=np.float64(0.9 if sizes == {"O0": 2, "O1": 3} else 0.25),
        )
    assert [(step.sizes, step.over) for step in steps] == [((2, 3), False), ((3, 3), True)]
    assert steps[0].next == (3, 3) and "first sample" in steps[0].why
    assert steps[1].best == (3, 3) and steps[1].measured_ms == pytest.approx(250)
    journaled = Proposal.from_json(json.loads(json.dumps(Proposal(search=steps[1]).to_json())))
    assert journaled.search == steps[1]


def test_with_a_model_of_another_rate_no_first_samples_are_run() -> None:
    model = BenefitModel(("a", "b"), 100.0, (2, 2), (10, 10), (Sample((2, 2), 0.9, 100.0),))
    old = replace(
        model, per_second=80.0, samples=tuple(Sample(s, 0.9 / min(s), 80.0) for s in bootstrap_sizes((1, 2), (9, 9), 4))
    )
    search = Search(GOAL)
    anew, transferred = search.next(model, None), search.next(model, old)
    assert isinstance(anew, Trial) and anew.reason == "first sample 2 of 8"
    assert isinstance(transferred, Trial) and "the model of 80/s" in transferred.reason
    assert nearest([old, replace(old, per_second=500.0)], 150.0) == old


def interval(queued: int, latency_s: float = 0.1, per_s: float = 100.0) -> Interval:
    return Interval(5.0, queued, per_s, 500, latency_s)


def test_a_latency_counts_once_the_queues_are_calm_and_the_time_is_learned() -> None:
    settling = Settling(0.3)
    verdicts = [settling.look(interval(queued, latency_s)) for queued, latency_s in ((900, 9), (500, 5), (80, 1))]
    assert [verdict.latency_s for verdict in verdicts] == [None, None, None]
    assert verdicts[-1].queues is Queues.SHRINKING
    assert settling.look(interval(78, 0.2)).latency_s is None
    assert settling.look(interval(79, 0.4)).latency_s == pytest.approx(0.3)
    assert settling.learned_s == 20.0
    settling.begin()
    settling.look(interval(79))
    settling.look(interval(79))
    assert settling.learned_s == 12.5


def test_queues_that_only_grow_have_a_latency_without_bound() -> None:
    settling = Settling(0.3)
    verdicts = [settling.look(interval(100 * number)) for number in range(5)]
    assert [verdict.latency_s for verdict in verdicts[:3]] == [None, None, None]
    assert isinf(verdicts[3].latency_s or 0)


def test_a_backlog_that_hardly_drains_is_not_waited_for_for_ever() -> None:
    settling = Settling(0.3)
    verdicts = [settling.look(interval(9000 - 60 * number, latency_s=50.0)) for number in range(14)]
    assert verdicts[11].latency_s is None
    assert verdicts[13].latency_s == 50.0 and verdicts[13].queues is Queues.SHRINKING


def test_a_rate_is_another_after_two_intervals_apart_or_one_that_queues_feel() -> None:
    watch = RateWatch()
    assert watch.look(100.0, growing=False) and watch.per_second == 100.0
    assert not watch.look(108.0, growing=True)
    assert not watch.look(150.0, growing=False)
    assert not watch.look(70.0, growing=False)
    assert watch.look(72.0, growing=False) and watch.per_second == pytest.approx(71.0)
    assert watch.look(150.0, growing=True) and watch.per_second == 150.0
    assert [RateWatch(500.0).look(9.0, growing=True)] == [True]


def sizes_of(policy: AuTraScale, seen: Observation) -> dict[str, int]:
    return {want.operator: want.replicas for want in policy.propose(seen).wants}


def test_the_base_is_enough_when_it_keeps_the_latency() -> None:
    policy = AuTraScale(latency_ms=300)
    seen = replace(line(16.6, 25, replicas=8), latency_mean_s=0.2)
    assert sizes_of(policy, seen) == {"O0": 2, "O1": 3}
    small = replace(
        seen, operators={n: replace(o, replicas={"O0": 2, "O1": 3}.get(n, 1)) for n, o in seen.operators.items()}
    )
    policy.propose(small)
    policy.propose(small)
    proposal = policy.propose(small)
    assert {want.operator: want.replicas for want in proposal.wants} == {"O0": 2, "O1": 3}
    assert "200 ms with a score of 1.000" in proposal.wants[0].reason
    assert [model.base for model in policy.models] == [(2, 3)]


def test_sizes_that_guards_do_not_allow_are_given_up() -> None:
    policy = AuTraScale(latency_ms=300)
    seen = replace(line(16.6, 25, replicas=1), latency_mean_s=0.9)
    for _ in range(5):
        policy.propose(seen)
    # It wanted (2, 3), got (1, 1), and measures that instead: nothing better can be had in what follows.
    assert policy.models and policy.models[0].samples[-1].sizes == (1, 1)


def test_everything_shrinks_when_nothing_arrives_and_comes_back() -> None:
    policy = AuTraScale()
    busy, quiet = line(16.6, 25, replicas=8), line(16.6, 25, per_s=0, replicas=8)
    policy.propose(busy)
    policy.propose(quiet)
    assert sizes_of(policy, quiet) == {"O0": 1, "O1": 1}
    assert sizes_of(policy, busy) == {"O0": 2, "O1": 3}


def test_a_rate_to_be_ready_for_counts_instead_of_the_one_that_is_seen() -> None:
    assert sizes_of(AuTraScale(per_second=200), line(16.6, 25)) == {"O0": 4, "O1": 5}


def test_the_overhead_of_2_to_10_operators_is_far_below_an_interval() -> None:
    found = bench_overhead()
    assert [overhead.operators for overhead in found] == [2, 4, 6, 8, 10]
    assert all(0 < seconds < 1 for its in found for seconds in (its.train_s, its.use_s, its.transfer_s))
    assert "| 10 |" in overhead_table(found)


MODEL = BenefitModel(
    ("a", "b"),
    123.456,
    (2, 3),
    (8, 9),
    (Sample((2, 3), 0.45, 123.0), Sample((8, 9), inf, 99.5), Sample((4, 4), 0.2, 1)),
)


def test_a_model_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    library = ModelLibrary(Store(str(tmp_path)))
    library.write("my app/x", (MODEL, replace(MODEL, per_second=20.0, samples=())))
    assert library.names() == ["my app/x@20", "my app/x@123.456"]
    assert ModelLibrary(Store(str(tmp_path))).of("my app/x")[1] == MODEL
    assert library.of("my app") == ()


def test_a_damaged_model_is_named_and_the_others_are_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    library = ModelLibrary(Store(str(tmp_path)))
    library.write("app", (MODEL, replace(MODEL, per_second=20.0)))
    file = tmp_path / "models" / "app@20.arrow"
    data = bytearray(file.read_bytes())
    place = data.index(np.float64(0.45).tobytes())
    data[place] ^= 1
    file.write_bytes(bytes(data))
    assert library.of("app") == (MODEL,)
    assert "app@20.arrow: is not a whole elastream-benefit-model" in caplog.text
    for cut in (0, 10, len(data) // 2):
        with pytest.raises(Damaged, match="remove it, and it is learned again"):
            decode(encode(MODEL)[:cut], "here")


def test_models_are_listed_shown_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ModelLibrary(Store(str(tmp_path))).write("app", (MODEL,))
    assert main(["models", str(tmp_path)]) == 0
    assert "app@123.456" in capsys.readouterr().out
    assert main(["models", str(tmp_path), "app@123.456"]) == 0
    assert "450" in capsys.readouterr().out
    assert main(["models", str(tmp_path), "app@99"]) == 2
    assert "there are: app@123.456" in capsys.readouterr().err
    assert main(["models", str(tmp_path), "app@123.456", "--remove"]) == 0
    assert main(["models", str(tmp_path)]) == 0
    assert "no models in" in capsys.readouterr().out


def test_a_run_leaves_its_models_in_its_base_and_in_the_library(tmp_path: Path) -> None:
    flow = Topology("kept").source("in", sources.replay(constant(50, 60.0)))
    flow.batch("work", lambda batch: batch, after="in", replicas=(1, 4), start=4)
    graph = flow.output("out", after="work").build()
    base, shared = str(tmp_path / "base"), str(tmp_path / "shared")
    handle = LocalEngine(virtual=True).run(graph, base, policy="autrascale", td_s=5.0, models=shared)
    handle.await_end(60.0)
    handle.stop()
    kept = ModelLibrary(Store(shared)).of("kept")
    assert [model.base for model in kept] == [(1,)] and kept[0].samples
    assert ModelLibrary(Store(base)).of("kept") == kept


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("autrascale:latency_ms=0", "latency_ms must be more than 0"),
        ("autrascale:alpha=1", "alpha must be between 0 and 1"),
        ("autrascale:w=-1", "w must be 0 or more"),
        ("autrascale:xi=-1", "xi must be 0 or more"),
        ("autrascale:alike=1", "alike from 2"),
        ("autrascale:per_second=-5", "per_second must be 0 or more"),
    ],
)
def test_a_wrong_parameter_is_explained(word: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        make_policy(word)
