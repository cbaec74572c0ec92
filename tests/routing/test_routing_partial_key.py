"""Partial key grouping: a key has two lanes, and the shorter queue is filled first."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routes import ACTIVE, PATIENT, batch_of

from elastream.routing import Sender, Snapshot, lanes_of
from elastream.topology import groupings


@PATIENT
@given(
    keys=st.lists(st.integers(0, 12), min_size=1, max_size=200),
    active=ACTIVE,
    loads=st.lists(st.lists(st.integers(0, 500), min_size=9, max_size=9), min_size=1, max_size=4),
)
def test_partial_key_uses_at_most_two_lanes_a_key(
    keys: list[int], active: tuple[int, ...], loads: list[list[int]]
) -> None:
    found: dict[int, set[int]] = {}
    for load in loads:
        to = Snapshot(active, tuple(load[: len(active)]))
        lanes = lanes_of(groupings.partial_key("key"), batch_of(key=keys), to, Sender())
        for key, lane in zip(keys, lanes.tolist(), strict=True):
            found.setdefault(key, set()).add(lane)
    assert max(len(lanes) for lanes in found.values()) <= 2
    assert set().union(*found.values()) <= set(active)


@settings(PATIENT, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), lanes=st.integers(3, 16))
def test_partial_key_is_more_even_than_fields_when_a_few_keys_are_hot(seed: int, lanes: int) -> None:
    keys = np.random.default_rng(seed).zipf(1.6, 5_000)
    to = Snapshot(tuple(range(lanes)))
    busiest = {
        grouping.name: max(Counter(lanes_of(grouping, batch_of(key=keys), to, Sender()).tolist()).values())
        for grouping in (groupings.partial_key("key"), groupings.fields("key"))
    }
    assert busiest["partial_key"] < busiest["fields"]


def test_keys_that_share_one_lane_of_partial_key_need_not_share_the_other() -> None:
    lanes = tuple(range(5))
    pairs = {_candidates(key, lanes) for key in range(200)}
    assert pairs == {(a, b) for a in lanes for b in lanes if a < b}


@pytest.mark.parametrize("lanes", [2, 3, 5, 8, 16])
def test_partial_key_is_about_even_when_keys_are_many(lanes: int) -> None:
    batch = batch_of(key=np.arange(10_000))
    counts = Counter(lanes_of(groupings.partial_key("key"), batch, Snapshot(tuple(range(lanes))), Sender()).tolist())
    assert max(counts.values()) <= 1.1 * 10_000 / lanes


def _candidates(key: int, active: tuple[int, ...]) -> tuple[int, ...]:
    """Where a key may go, as places in `active`."""
    rows = batch_of(key=[key] * 100)
    counts = Counter(lanes_of(groupings.partial_key("key"), rows, Snapshot(active), Sender()).tolist())
    assert set(counts.values()) == {50}
    return tuple(sorted(active.index(lane) for lane in counts))


@PATIENT
@given(
    key=st.integers(0, 1000),
    active=ACTIVE.filter(lambda lanes: len(lanes) > 1),
    waiting=st.tuples(st.integers(0, 300), st.integers(0, 300)),
    rows=st.integers(1, 400),
)
def test_partial_key_fills_the_shorter_queue_first_and_then_both_alike(
    key: int, active: tuple[int, ...], waiting: tuple[int, int], rows: int
) -> None:
    low, high = _candidates(key, active)
    queued = [7] * len(active)
    queued[low], queued[high] = waiting
    to = Snapshot(active, tuple(queued))
    counts = Counter(lanes_of(groupings.partial_key("key"), batch_of(key=[key] * rows), to, Sender()).tolist())
    after = waiting[0] + counts[active[low]], waiting[1] + counts[active[high]]
    assert sum(after) == sum(waiting) + rows
    if rows <= abs(waiting[0] - waiting[1]):
        shorter = low if waiting[0] < waiting[1] else high
        assert counts == {active[shorter]: rows}
    else:
        assert abs(after[0] - after[1]) <= 1
