"""AuTraScale's score and its base: golden values of the paper, true rates, and the fewest replicas for a rate."""

from dataclasses import replace
from math import inf

import pytest
from autrascale_cases import GOAL, SPACES, line
from hypothesis import given
from hypothesis import strategies as st

from elastream.policies.autrascale.base_search import BaseSearch, Ran
from elastream.policies.autrascale.score import Goal
from elastream.policies.autrascale.true_rates import base_sizes, true_per_s
from elastream.policies.flow import Flow
from elastream.testing import observation, operator, source


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
