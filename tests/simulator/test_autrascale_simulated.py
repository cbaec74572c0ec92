"""AuTraScale on the simulator where replicas crowd one another, beside DS2 and DRS; and when the rate changes."""

import pytest
from crowded import POOL, played

from elastream.policies.autrascale import BenefitModel
from elastream.policies.autrascale.policy import AuTraScale
from elastream.policies.autrascale.score import Goal
from elastream.policies.autrascale.search import Search
from elastream.workload import constant, steps

TARGET_MS = 200.0
WORD = f"autrascale:latency_ms={TARGET_MS:g}"
PLAIN = f"{WORD},plain=1"
FIRST = 9
"""First samples of three operators, all alike (6) and one alone (3)."""


def model_of(policy: object, per_second: float) -> BenefitModel:
    assert isinstance(policy, AuTraScale)
    return min(policy.models, key=lambda model: abs(model.per_second - per_second))


@pytest.mark.parametrize("start", [1, POOL])
def test_autrascale_keeps_the_latency_with_few_replicas_from_too_few_and_from_too_many(start: int) -> None:
    found = played(WORD, constant(200, 900.0), start=start)
    model, goal = model_of(found.policy, 200), Goal(TARGET_MS / 1e3)
    assert found.latency_ms <= TARGET_MS
    assert goal.score(found.latency_ms / 1e3, found.sizes, model.base) >= goal.enough
    # The first samples, as the paper takes them, and a few iterations.
    assert len(model.samples) <= FIRST + 4
    assert sum(found.sizes) < 0.75 * 3 * POOL


def test_ds2_and_drs_with_true_rates_miss_the_latency_where_replicas_crowd_one_another() -> None:
    arrivals = constant(200, 900.0)
    for word in ("ds2", f"drs:latency_ms={TARGET_MS:g}"):
        assert played(word, arrivals, start=1).latency_ms > TARGET_MS, word


def test_drs_with_observed_rates_keeps_it_with_more_replicas_than_autrascale() -> None:
    arrivals = constant(200, 900.0)
    drs = played(f"drs:latency_ms={TARGET_MS:g},observed=1", arrivals, start=POOL)
    ours = played(WORD, arrivals, start=POOL)
    assert drs.latency_ms <= TARGET_MS and ours.latency_ms <= TARGET_MS
    assert sum(ours.sizes) < 0.75 * sum(drs.sizes)


def test_every_reason_says_what_was_tried_what_is_best_and_why_the_next() -> None:
    reasons = played(PLAIN, constant(220, 900.0), start=1).reasons
    assert reasons[0].startswith("by true rates the fewest that serve")
    tried = [reason for reason in reasons if reason.startswith("tried")]
    assert any("best so far (" in reason and "first sample" in reason for reason in tried)
    assert any("its score is" in reason and "expected improvement" in reason for reason in tried)


@pytest.mark.parametrize(("before", "after"), [(180, 120), (130, 200)])
def test_at_another_rate_transfer_takes_at_most_half_the_real_samples_of_starting_anew(before: int, after: int) -> None:
    transferred = anew = 0
    for seed in (1, 2):
        both = played(PLAIN, steps([before, after], 1800.0), start=1, seed=seed)
        alone = played(PLAIN, constant(after, 900.0), start=1, seed=seed)
        assert both.latency_ms <= TARGET_MS and alone.latency_ms <= TARGET_MS
        transferred += len(model_of(both.policy, after).samples)
        anew += len(model_of(alone.policy, after).samples)
    assert transferred <= anew / 2


def test_a_reserve_that_is_tried_first_finds_sizes_with_fewer_samples_than_the_papers_first_ones() -> None:
    ours, papers = (played(word, constant(120, 900.0), start=1) for word in (WORD, PLAIN))
    assert ours.latency_ms <= TARGET_MS and papers.latency_ms <= TARGET_MS
    assert len(model_of(ours.policy, 120).samples) < len(model_of(papers.policy, 120).samples)
    assert sum(ours.sizes) <= sum(papers.sizes)
    assert any("next" in reason and "the fewest that serve 1.25 times the rate" in reason for reason in ours.reasons)


def test_what_waits_from_before_a_jump_of_the_rate_is_served_first() -> None:
    arrivals = steps([60, 200], 400.0)
    ours, papers = (played(word, arrivals, start=1) for word in (WORD, PLAIN))
    assert any("tuples wait from before; they are served first" in reason for reason in ours.reasons)
    assert not any("wait from before" in reason for reason in papers.reasons)


def test_a_target_that_cannot_be_kept_is_said_so_with_the_best_that_can_be() -> None:
    found = played("autrascale:latency_ms=30", constant(180, 900.0), start=1)
    assert "the target cannot be kept" in found.reasons[-1] and "best of" in found.reasons[-1]
    assert len(model_of(found.policy, 180).samples) <= FIRST + 2
    assert found.sizes == Search(Goal(0.03)).best(model_of(found.policy, 180)).sizes


def test_a_run_that_begins_with_the_models_of_another_goes_to_the_best_sizes_at_once() -> None:
    first = played(WORD, constant(200, 900.0), start=1)
    assert isinstance(first.policy, AuTraScale)
    second = AuTraScale(latency_ms=TARGET_MS)
    second.recall(first.policy.models)
    again = played(second, constant(200, 300.0), start=1)
    assert "is known from" in again.reasons[0]
    assert again.sizes == first.sizes and again.latency_ms <= TARGET_MS
    assert len(model_of(second, 200).samples) == len(model_of(first.policy, 200).samples)
