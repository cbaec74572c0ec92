"""AuTraScale as a policy: how a search goes on and ends, when a latency counts, when a rate is another one, and what is proposed."""

from dataclasses import replace
from math import inf, isinf

import numpy as np
import pytest
from autrascale_cases import GOAL, line

from elastream.codec import decode, encode
from elastream.control import Observation, Proposal
from elastream.errors import SettingError
from elastream.policies import make_policy
from elastream.policies.autrascale import BenefitModel, Sample
from elastream.policies.autrascale.bootstrap import bootstrap_sizes
from elastream.policies.autrascale.models import nearest
from elastream.policies.autrascale.policy import AuTraScale
from elastream.policies.autrascale.rate_watch import RateWatch
from elastream.policies.autrascale.score import Goal
from elastream.policies.autrascale.search import Search, Trial
from elastream.policies.autrascale.settling import Interval, Queues, Settling


def test_a_target_that_nothing_can_keep_is_given_up_once_the_most_was_measured() -> None:
    base, most = (2, 2), (10, 10)
    model = BenefitModel(("a", "b"), 80.0, base, most)
    search, reasons = Search(Goal(0.01)), []
    while isinstance(trial := search.next(model.with_sample(Sample(base, 0.9, 80.0)), None), Trial):
        model = model.with_sample(Sample(trial.sizes, 0.5 + 1 / min(trial.sizes), 80.0))
        reasons.append(trial.reason)
    assert len(reasons) <= len(bootstrap_sizes(base, most, search.alike))
    assert trial.reason.startswith("the target cannot be kept") and most in [sample.sizes for sample in model.samples]


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
    journaled = decode(encode(Proposal(search=steps[1])), Proposal, "journal")
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
