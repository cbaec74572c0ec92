"""Load-balancing grouping gives the counts that dealing out one by one gives."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastream.routing import Sender, Snapshot, lanes_of
from elastream.routing.balance import balanced
from elastream.topology import groupings


def one_by_one(rows: int, load: list[float], cost: float, turn: int) -> list[int]:
    """Algorithm 1 as it is written, tuple by tuple."""
    counts = [0] * len(load)
    for _ in range(rows):
        lowest = 0
        for lane in range(len(load)):
            if load[lane] + counts[lane] * cost < load[lowest] + counts[lowest] * cost:
                lowest = lane
        if load[lowest] + counts[lowest] * cost >= 1:
            break
        counts[lowest] += 1
    for spilled in range(rows - sum(counts)):
        counts[(turn + spilled) % len(load)] += 1
    return counts


loads = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 1.0])), min_size=1, max_size=9)
costs = st.one_of(st.floats(1e-4, 2.0), st.sampled_from([1 / 64, 0.125, 0.1]))


@settings(max_examples=600, deadline=None)
@given(st.integers(0, 300), loads, costs, st.integers(0, 50))
def test_the_counts_are_those_of_the_sequential_algorithm(rows: int, load: list[float], cost: float, turn: int) -> None:
    expected = one_by_one(rows, load, cost, turn)
    assert balanced(rows, np.asarray(load), cost, turn).tolist() == expected


def test_a_new_replica_gets_everything_until_it_is_as_loaded_as_the_others() -> None:
    assert balanced(10, np.array([0.5, 0.5, 0.0]), 0.05, 0).tolist() == [0, 0, 10]
    assert balanced(13, np.array([0.5, 0.5, 0.0]), 0.05, 0).tolist() == [1, 1, 11]


def test_full_replicas_are_served_in_turn() -> None:
    assert balanced(7, np.array([1.0, 1.0, 1.0]), 0.1, 1).tolist() == [2, 3, 2]


def test_an_operator_that_was_never_timed_gets_its_tuples_evenly() -> None:
    assert balanced(7, np.array([0.9, 0.0]), 0.0, 0).tolist() == [4, 3]


def test_lane_numbers_are_those_of_the_active_lanes() -> None:
    batch = pa.RecordBatch.from_pydict({"x": list(range(4))})
    to = Snapshot((2, 5), load=(0.9, 0.1), cost=0.1)
    assert lanes_of(groupings.load_balancing, batch, to, Sender()).tolist() == [5, 5, 5, 5]


@pytest.mark.parametrize("rows", [1, 1_000_000])
def test_a_million_tuples_are_dealt_out_at_once(rows: int) -> None:
    # All of them add less to the first replica than the second one has already.
    assert balanced(rows, np.linspace(0, 0.5, 64), 1e-9, 3).tolist() == [rows] + [0] * 63
