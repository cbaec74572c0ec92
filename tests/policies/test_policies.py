"""Policies: golden values of the papers, and what each does at the edges."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.control import Observation, Proposal
from elastream.errors import SettingError
from elastream.policies import POLICIES, make_policy
from elastream.policies.flow import Flow
from elastream.policies.psps import Psps
from elastream.testing import ScriptedPlant, observation, operator, source
from elastream.workload import constant
from elastream_lab.rivals.dabs import predict
from elastream_lab.rivals.markov import forecast
from elastream_lab.rivals.oracle import Oracle


def sizes(proposal: Proposal) -> dict[str, int]:
    return {want.operator: want.replicas for want in proposal.wants}


def table_two() -> Observation:
    """PSPS, figure 6 and table II (a)."""
    return observation(
        source("in", 100),
        operator("O1", {"in": 100}, service_ms=16.6, processed=140, queued=0),
        operator("O2", {"O1": 117}, service_ms=25, processed=120, queued=7),
        operator("O3", {"O2": 90}, service_ms=100, processed=90, queued=20),
        seconds=1.0,
    )


def test_figure_5_of_psps_gives_theta_4() -> None:
    seen = observation(
        source("in", 100),
        operator("O1", {"in": 100}),
        operator("O2", {"O1": 70}),
        operator("O3", {"O1": 30}),
        operator("O4", {"O2": 28, "O3": 30}),
    )
    thetas = Flow().thetas(seen)
    assert {name: round(theta, 6) for name, theta in thetas.items()} == {
        "in": 1.0,
        "O1": 1.0,
        "O2": 0.7,
        "O3": 0.3,
        "O4": 0.58,
    }


def test_table_2_of_psps_gives_its_replicas_and_its_numbers() -> None:
    proposal = Psps().propose(table_two())
    assert sizes(proposal) == {"O1": 2, "O2": 3, "O3": 9}
    assert [want.reason.split(",")[0] for want in proposal.wants] == [
        "100 will arrive and 0 wait",
        "84 will arrive and 7 wait",
        "63 will arrive and 20 wait",
    ]
    assert [round(want.need or 0, 4) for want in proposal.wants] == [1.66, 2.275, 8.3]


def test_psps_counts_what_a_source_has_not_read_yet_in_front_of_the_first_operator() -> None:
    seen = observation(
        source("in", 100, queued=100),
        operator("a", {"in": 100}, service_ms=10),
        operator("b", {"a": 100}, service_ms=10),
    )
    assert sizes(Psps().propose(seen)) == {"a": 2, "b": 1}


def test_psps_may_count_only_what_queues_grew_by() -> None:
    # Of what waits 30 came in this interval; the program that was published after the paper forgets the others.
    seen = observation(source("in", 100), operator("a", {"in": 100}, processed=70, service_ms=10, queued=500))
    assert sizes(Psps().propose(seen)) == {"a": 6}
    assert sizes(Psps(growth=1).propose(seen)) == {"a": 2}
    shrunk = observation(source("in", 100), operator("a", {"in": 100}, processed=150, service_ms=10, queued=500))
    assert sizes(Psps(growth=1).propose(shrunk)) == {"a": 1}


def test_psps_may_know_a_part_of_the_service_only() -> None:
    seen = observation(source("in", 200), operator("a", {"in": 200}, service_ms=10.1))
    assert sizes(Psps().propose(seen)) == {"a": 3}
    assert sizes(make_policy("psps:measured=0.98").propose(seen)) == {"a": 2}


@pytest.mark.parametrize("word", ["psps:growth=2", "psps:measured=0", "psps:measured=1.1"])
def test_psps_refuses_parameters_that_say_nothing(word: str) -> None:
    with pytest.raises(SettingError, match="must be"):
        make_policy(word)


def test_psps_keeps_the_shares_it_knows_while_nothing_flows() -> None:
    policy = Psps()
    policy.propose(observation(source("in", 100), operator("a", {"in": 100}), operator("b", {"a": 50}, service_ms=10)))
    quiet = observation(source("in", 0), operator("a", {"in": 0}), operator("b", {"a": 0}, service_ms=10, queued=30))
    assert sizes(policy.propose(quiet)) == {"a": 1, "b": 1}
    # Input is back, but the first operator has not passed anything on yet: half of it is still expected at b.
    back = observation(
        source("in", 400), operator("a", {"in": 400}, processed=0), operator("b", {"a": 0}, service_ms=10)
    )
    assert sizes(policy.propose(back)) == {"a": 1, "b": 2}


def test_psps_leaves_operators_alone_that_nobody_has_timed() -> None:
    seen = observation(source("in", 100), operator("a", {"in": 100}, service_ms=0.0))
    assert Psps().propose(seen).wants == ()


def test_the_shares_of_two_sources_add_up() -> None:
    seen = observation(source("x", 75), source("y", 25), operator("a", {"x": 75, "y": 25}, service_ms=20))
    assert Flow().thetas(seen)["a"] == pytest.approx(1.0)
    assert sizes(Psps().propose(seen)) == {"a": 2}


def test_ds2_sizes_by_true_rates_and_ignores_queues() -> None:
    assert sizes(make_policy("ds2").propose(table_two())) == {"O1": 2, "O2": 3, "O3": 7}


def test_static_wants_the_same_for_all() -> None:
    assert sizes(make_policy("static:replicas=4").propose(table_two())) == {"O1": 4, "O2": 4, "O3": 4}


def test_threshold_moves_one_step_at_a_time() -> None:
    def seen(busy: int, replicas: int) -> Observation:
        return observation(source("in", busy), operator("a", {"in": busy}, service_ms=10, replicas=replicas))

    policy = make_policy("threshold:high=0.8,low=0.4")
    assert sizes(policy.propose(seen(90, 1))) == {"a": 2}
    assert sizes(policy.propose(seen(100, 2))) == {"a": 2}
    assert sizes(policy.propose(seen(60, 2))) == {"a": 1}
    assert sizes(policy.propose(seen(10, 1))) == {"a": 1}


def test_threshold_sees_an_overload_in_the_queue_too() -> None:
    seen = observation(source("in", 50), operator("a", {"in": 50}, service_ms=10, queued=60))
    assert sizes(make_policy("threshold").propose(seen)) == {"a": 2}


def test_the_chain_forecasts_what_it_has_seen() -> None:
    # 0 -> 2 -> 0 -> 2 ...: after one step from 2 it is in 0, after two in 2 again.
    states = deque([0, 2, 0, 2, 0, 2])
    assert forecast(states, 1).tolist() == [1.0, 0.0, 0.0]
    assert forecast(states, 2).tolist() == [0.0, 0.0, 1.0]
    assert forecast(deque([1]), 3).tolist() == [0.0, 1.0, 0.0]


def test_markov_grows_before_the_load_is_there() -> None:
    policy = make_policy("markov:ahead=1")

    def seen(load: int) -> Observation:
        return observation(source("in", load), operator("a", {"in": load}, service_ms=10))

    for load in (60, 90, 60, 90, 60, 90):
        policy.propose(seen(load))
    # Stable now; every time before, an overload came next.
    assert sizes(policy.propose(seen(60))) == {"a": 2}


def test_dabs_follows_the_line_of_the_input_and_restarts() -> None:
    policy = make_policy("dabs:high=0.8,low=0.3")
    for load in (10, 20, 30, 40, 50):
        proposal = policy.propose(
            observation(source("in", load), operator("a", {"in": load}, service_ms=10), seconds=1)
        )
    # 60 are predicted: 0.6 of one replica, in the band.
    assert sizes(proposal) == {"a": 1}
    proposal = policy.propose(observation(source("in", 80), operator("a", {"in": 80}, service_ms=10, queued=90)))
    assert sizes(proposal) == {"a": 3}
    plant = ScriptedPlant([])
    assert policy.wrap(plant).apply(()) == 4.6
    assert plant.pauses == [4.6] and plant.discards == 1


def test_a_regression_never_predicts_less_than_nothing() -> None:
    assert predict(deque([10.0, 20.0, 30.0])) == pytest.approx(40.0)
    assert predict(deque([30.0, 10.0])) == 0.0
    assert predict(deque([7.0])) == 7.0


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_quiet_about_an_interval_of_no_length(name: str) -> None:
    seen = observation(source("in", 0), operator("a", {"in": 0}, service_ms=0.0), seconds=0.0)
    assert all(want.replicas >= 1 for want in make_policy(name).propose(seen).wants)


@pytest.mark.parametrize("name", POLICIES)
@given(loads=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=5))
def test_the_same_observations_give_the_same_proposals(name: str, loads: list[tuple[int, int]]) -> None:
    def played() -> list[Proposal]:
        policy = make_policy(name)
        if isinstance(policy, Oracle):
            policy.foresee((constant(100, 60),))
        return [
            policy.propose(observation(source("in", load), operator("a", {"in": load}, service_ms=3, queued=queued)))
            for load, queued in loads
        ]

    first = played()
    assert first == played()
    assert all(want.replicas >= 1 and want.reason for proposal in first for want in proposal.wants)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("pspss", "did you mean 'psps'"),
        ("zzz", "there are psps"),
        ("static:replicas=x", "replicas must be a number, got 'x'"),
        ("static:size=3", "'size=3' is no parameter=number; there are replicas"),
        ("static:replicas=0", "replicas must be 1 or more"),
        ("threshold:high=0.2,low=0.5", "low must be 0 or more and less than high"),
        ("markov:history=1", "history from 2"),
        ("dabs:window=1", "window must be 2 intervals or more"),
        ("hidalgo:low=2", "low must be 0 or more and less than high"),
        ("hidalgo:samples=1", "samples from 2"),
        ("cardellini:high=1.5", "high must be above 0 up to 1"),
        ("cardellini:budget=0", "every and budget from 1"),
        ("cardellini:latency_s=0", "latency_s must be more than 0"),
    ],
)
def test_a_wrong_word_for_a_policy_is_explained(word: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        make_policy(word)
