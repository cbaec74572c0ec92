"""DRS: sojourn times of M/M/k queues, the greedy, and its two kinds of rates."""

from dataclasses import replace
from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.control import Observation
from elastream.errors import SettingError
from elastream.policies import make_policy
from elastream.testing import observation, operator, source
from elastream_lab.rivals.drs import Station, allocate, expected_sojourn_s, sojourn_s


def test_one_replica_is_an_m_m_1_queue_and_two_are_as_erlang_says() -> None:
    station = Station("a", arrives_per_s=80, serves_per_s=100, least=1, most=9)
    assert sojourn_s(station, 1) == pytest.approx(1 / (100 - 80))
    # M/M/2: 1 / (mu (1 - rho^2)) with rho = 0.4.
    assert sojourn_s(station, 2) == pytest.approx(1 / (100 * (1 - 0.4**2)))
    assert sojourn_s(replace(station, arrives_per_s=100), 1) == inf
    assert sojourn_s(replace(station, arrives_per_s=5000), 5000 // 100 + 1) < 1


@given(load=st.floats(0.1, 40), more=st.integers(1, 20))
def test_a_replica_more_never_makes_a_tuple_stay_longer(load: float, more: int) -> None:
    station = Station("a", load * 10, 10, 1, 99)
    first = int(load) + more
    assert sojourn_s(station, first) >= sojourn_s(station, first + 1) >= 1 / 10


@given(loads=st.lists(st.floats(0.2, 3.5), min_size=2, max_size=3), target_s=st.floats(0.25, 2.0))
def test_the_greedy_finds_as_few_replicas_as_trying_all(loads: list[float], target_s: float) -> None:
    stations = [Station(str(n), load * 10, 10, 1, 8) for n, load in enumerate(loads)]
    sizes = allocate(stations, 10.0, target_s)
    every = (
        {s.name: size for s, size in zip(stations, some, strict=True)} for some in product(*[range(1, 9)] * len(loads))
    )
    good = [sum(some.values()) for some in every if expected_sojourn_s(stations, some, 10.0) <= target_s]
    if good:
        assert expected_sojourn_s(stations, sizes, 10.0) <= target_s
        assert sum(sizes.values()) == min(good)
    else:
        assert all(size <= 8 for size in sizes.values())


def seen(latency_s: float, replicas: int = 4) -> Observation:
    made = observation(
        source("in", 100),
        operator("a", {"in": 100}, service_ms=15, replicas=replicas, most=12),
        operator("b", {"a": 50}, service_ms=15, replicas=replicas, most=12),
    )
    return replace(made, latency_mean_s=latency_s)


def sizes(word: str, observed: Observation) -> dict[str, int]:
    return {want.operator: want.replicas for want in make_policy(word).propose(observed).wants}


def test_with_true_rates_it_gives_the_fewest_that_the_model_says_are_enough() -> None:
    # a: 1.5 busy replicas, b: 0.75, reached by every second tuple: with 2 and 1 a tuple stays 64 ms, with 2 and 2 43 ms.
    assert sizes("drs:latency_ms=70", seen(0.5)) == {"a": 2, "b": 1}
    assert sizes("drs:latency_ms=30", seen(0.5)) == {"a": 3, "b": 2}


def test_with_observed_rates_every_replica_looks_busy_and_it_grows_until_the_latency_is_met() -> None:
    # 25/s and 12.5/s per replica are all that was served: five of each are the fewest that are stable.
    grown = sizes("drs:latency_ms=300,observed=1", seen(0.5))
    assert grown["a"] > 4 and grown["b"] > 4
    assert sizes("drs:latency_ms=300,observed=1", seen(0.2)) == {"a": 4, "b": 4}


def test_a_target_that_the_services_alone_miss_takes_all_that_helps() -> None:
    assert sizes("drs:latency_ms=1", seen(0.5)) == {"a": 12, "b": 12}


def test_wrong_parameters_are_explained() -> None:
    with pytest.raises(SettingError, match="latency_ms must be more than 0"):
        make_policy("drs:latency_ms=-1")
    with pytest.raises(SettingError, match="observed must be 0"):
        make_policy("drs:observed=2")
