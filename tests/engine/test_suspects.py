"""How a tuple that ends its process is found among thousands: by few deaths, each of which costs seconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.engine.driver.dispatch.suspects import Suspects
from elastream.lanes import LaneId

LANE = LaneId("work", 0)
LARGEST = 5000
"""Tuples of a work."""


def search(rows: int, poison: set[int], *, shortest: int = LARGEST) -> tuple[int, list[int]]:
    """Serve a lane as the planner does: how many hosts died, and which tuples were buried. Works may come back half done."""
    suspects, deaths, consumed, buried = Suspects(), 0, 0, list[int]()
    while consumed < rows:
        suspect = suspects.get(LANE)
        size = min(LARGEST, rows - consumed)
        if suspect is not None:
            size = min(size, suspect.rows)
        if suspects.condemned(LANE):
            buried += range(consumed, consumed + size)
        elif poison & set(range(consumed, consumed + size)):
            deaths += 1
            suspects.host_died(LANE, consumed, size, alone=suspect is not None, whole=False)
            continue
        else:
            size = min(size, shortest)
        consumed += size
        suspects.served(LANE, consumed)
    assert not suspects
    return deaths, buried


@given(st.integers(1, LARGEST).flatmap(lambda rows: st.tuples(st.just(rows), st.integers(0, rows - 1))))
def test_one_tuple_among_thousands_is_found_by_ten_deaths_and_buried_alone(where: tuple[int, int]) -> None:
    rows, culprit = where
    deaths, buried = search(rows, {culprit})
    # The first with others in the host, the second alone, one per eighth of 5,000, and three of the tuple itself.
    assert buried == [culprit] and deaths <= 10


@given(st.sets(st.integers(0, 2999), max_size=5), st.integers(1, 50))
def test_every_such_tuple_is_buried_and_no_other(poison: set[int], shortest: int) -> None:
    assert search(3000, poison, shortest=shortest)[1] == sorted(poison)


@pytest.mark.parametrize("served", [40, 100])
def test_a_lane_whose_host_was_killed_is_innocent_when_its_tuples_have_been_served(served: int) -> None:
    suspects = Suspects()
    suspects.host_died(LANE, 0, 100, alone=False, whole=False)
    found = suspects.get(LANE)
    assert found is not None and found.rows == 100
    suspects.served(LANE, served)
    assert (LANE in suspects) is (served < 100)
    suspects.served(LANE, 100)
    assert not suspects


def test_rows_of_a_sink_are_not_cut() -> None:
    suspects = Suspects()
    for alone in (False, True, True):
        suspects.host_died(LANE, 0, 100, alone=alone, whole=True)
        found = suspects.get(LANE)
        assert found is not None and found.rows == 100 and not suspects.condemned(LANE)
    suspects.host_died(LANE, 0, 100, alone=True, whole=True)
    assert suspects.condemned(LANE)
