"""The systems with two levels that AI-SPS is measured on: Hidalgo and others 2017, Cardellini and others 2018."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from elastream.control import ControlLoop, Guards, Observation, OperatorObservation, Proposal
from elastream.policies import make_policy
from elastream.testing import ManualClock, ScriptedPlant, observation, operator, source
from elastream_lab.rivals.cardellini import Cardellini
from elastream_lab.rivals.hidalgo import Hidalgo
from elastream_lab.rivals.markov import stationary


def loaded(per_s: int, replicas: int = 4) -> Observation:
    """One operator of 10 ms: 100 per replica are all of its time."""
    return observation(source("in", per_s), operator("a", {"in": per_s}, service_ms=10, replicas=replicas))


def size(proposal: Proposal) -> int:
    (want,) = proposal.wants
    return want.replicas


def reason(proposal: Proposal) -> str:
    (want,) = proposal.wants
    return want.reason


# -- Hidalgo


@pytest.mark.parametrize(("per_s", "after", "said"), [(401, 5, "above 1"), (199, 3, "below 0.5")])
def test_hidalgo_reacts_to_the_second_sign_in_a_row_with_one_replica(per_s: int, after: int, said: str) -> None:
    policy = Hidalgo()
    first, second = policy.propose(loaded(per_s)), policy.propose(loaded(per_s))
    assert (size(first), size(second)) == (4, after)
    assert "first sign of two" in reason(first) and f"{said}, twice in a row" in reason(second)
    # A change takes its two signs with it.
    assert size(policy.propose(loaded(per_s))) == 4


@pytest.mark.parametrize("between", [200, 400])
def test_hidalgo_takes_no_sign_from_a_utilisation_in_its_band(between: int) -> None:
    policy = Hidalgo()
    assert [size(policy.propose(loaded(per_s))) for per_s in (500, between, 500, 100, 500)] == [4] * 5
    assert "is in 0.5..1" in reason(policy.propose(loaded(between)))


def test_hidalgo_predicts_in_every_20th_interval_and_moves_by_five() -> None:
    policy = Hidalgo()
    # Never twice in a row, so that the reactive level says nothing.
    loads = [500, 500, 300] * 7
    sizes = [size(policy.propose(loaded(per_s, replicas=10 if n == 19 else 4))) for n, per_s in enumerate(loads[:19])]
    assert 9 not in sizes
    # Overloaded for two thirds of the time: 0.667, 0.333, 0 have a deviation of 0.27.
    proposal = policy.propose(loaded(500))
    assert size(proposal) == 9
    assert "predicted from 20 samples: overloaded for" in reason(proposal)


def test_hidalgo_leaves_it_to_the_reactive_level_where_no_state_stands_out() -> None:
    policy = Hidalgo()
    # A third each: no deviation. The twentieth is the second sign.
    for per_s in [500, 300, 100] * 6:
        policy.propose(loaded(per_s))
    policy.propose(loaded(500))
    proposal = policy.propose(loaded(500))
    assert size(proposal) == 5 and "twice in a row" in reason(proposal)


def test_hidalgo_looks_at_the_last_hundred_samples() -> None:
    policy = Hidalgo()
    for _ in range(99):
        policy.propose(loaded(300))
    for _ in range(100):
        policy.propose(loaded(100))
    proposal = policy.propose(loaded(100))
    assert "predicted from 100 samples: underloaded for 100%" in reason(proposal)
    # Four less five: one is left.
    assert size(proposal) == 1


def test_the_long_run_of_a_chain() -> None:
    # From 0 always to 1, from 1 to 0 or on: worked out by hand from the transition matrix.
    assert stationary(deque([0, 1, 0, 1, 0, 1, 0, 1])) == pytest.approx([0.5, 0.5, 0.0])
    assert stationary(deque([2, 2, 2])).tolist() == [0.0, 0.0, 1.0]
    # One sign at the very end is no prediction of nothing else.
    assert stationary(deque([1] * 19 + [2]))[2] == pytest.approx(1 / 20, abs=0.005)
    states = deque([0, 0, 1, 2, 2, 1, 0, 0])
    chain = np.array([[2 / 3, 1 / 3, 0], [1 / 2, 0, 1 / 2], [0, 1 / 2, 1 / 2]])
    shares = stationary(states)
    assert shares @ chain == pytest.approx(shares)


# -- Cardellini


def busy(*utilisations: float, replicas: int = 4, latency_s: float = 0.1) -> Observation:
    """Operators a, b, c ... with these shares of their time busy."""
    names = "abcdefgh"[: len(utilisations)]
    made: list[OperatorObservation] = []
    for name, used in zip(names, utilisations, strict=True):
        its = operator(name, {"in": 100}, service_ms=10, replicas=replicas)
        made.append(replace(its, busy_seconds=used * replicas))
    return replace(observation(source("in", 100), *made), latency_mean_s=latency_s)


def test_cardellini_asks_below_every_interval_and_grants_above_every_third() -> None:
    policy = Cardellini()
    first, second, third = (policy.propose(busy(0.9)) for _ in range(3))
    assert [size(first), size(second), size(third)] == [4, 4, 5]
    assert (
        reason(first) == "utilisation 0.90 above 0.7, score 1.29: waits for the application's turn, every 3 intervals"
    )
    assert reason(third).endswith("granted")


@pytest.mark.parametrize(("used", "after"), [(0.71, 5), (0.70, 4), (0.394, 4), (0.393, 3), (0.1, 3)])
def test_cardellini_shrinks_when_the_rest_would_stay_below_three_quarters_of_the_threshold(
    used: float, after: int
) -> None:
    # Four at 0.39375 are three at 0.525.
    assert size(make_policy("cardellini:every=1").propose(busy(used))) == after


def test_cardellini_grants_the_best_scores_within_its_budget() -> None:
    proposal = Cardellini(every=1, budget=2).propose(busy(0.75, 0.95, 0.1, 0.85))
    assert {want.operator: want.replicas for want in proposal.wants} == {"a": 4, "b": 5, "c": 4, "d": 5}
    reasons = {want.operator: want.reason for want in proposal.wants}
    assert "score 1.07: refused, the budget of 2 is spent" in reasons["a"]
    # Whoever may shrink comes after all who must grow.
    assert "score 0.75: refused, the budget of 2 is spent" in reasons["c"]


def test_cardellini_refuses_to_shrink_while_the_latency_target_is_missed() -> None:
    policy = Cardellini(every=1, latency_s=1.0)
    late = policy.propose(busy(0.1, 0.9, latency_s=1.01))
    assert {want.operator: want.replicas for want in late.wants} == {"a": 4, "b": 5}
    assert "refused, latency 1.01 s misses 1 s" in next(w.reason for w in late.wants if w.operator == "a")
    assert size(policy.propose(busy(0.1, latency_s=1.0))) == 3


def test_cardellini_asks_for_nothing_beyond_what_there_is() -> None:
    policy = Cardellini(every=1, budget=1)
    alone = policy.propose(busy(0.0, replicas=1))
    assert size(alone) == 1 and "asks for nothing" in reason(alone)
    all_there_are = operator("a", {"in": 1}, replicas=4)
    full = replace(all_there_are, most=4, busy_seconds=4.0)
    # A request that nobody can grant takes nothing from the budget.
    other = replace(operator("b", {"in": 1}, replicas=4), busy_seconds=3.2)
    proposal = policy.propose(observation(source("in", 1), full, other))
    assert {want.operator: want.replicas for want in proposal.wants} == {"a": 4, "b": 5}


def test_cardellinis_reconfigurations_pause_and_only_those() -> None:
    clock = ManualClock()
    plant = ScriptedPlant([busy(0.9)], clock)
    loop = ControlLoop(
        plant, Cardellini(every=2), td_s=1.0, guards=Guards(), clock=clock, patience_s=float("inf"), journal=None
    )
    decided = []
    for _ in range(12):
        if loop.step() is not None:
            decided.append(clock())
        clock.advance(1.0)
    # Looked at in seconds 1 and 2; the second grows, and the next interval begins when the pause is over.
    assert decided == [1.0, 2.0, 8.0, 9.0]
    assert plant.pauses == [4.6, 4.6] and not plant.discards
