"""Parts of a work that raised: every way ends, and ends with one tuple, one key or the rows of a sink."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from elastream.engine.messages import LaneRows, LaneWork
from elastream.engine.worker.smaller_works import Step, smaller
from elastream.lanes.segments import SchemaId, Slice


def work_of(lanes: list[list[int]], wake: int | None = None) -> LaneWork:
    """A work of lanes with slices of so many rows."""
    rows = [
        LaneRows(number, 0, [Slice("s", at, 1, 0, SchemaId("x"), 3, count) for at, count in enumerate(counts)], (1, 2))
        for number, counts in enumerate(lanes)
    ]
    return LaneWork(1, "a", rows, 0.0, 0.05, 10, True, 0, wake=wake)


def tuples_of(work: LaneWork) -> int:
    return sum(piece.rows for rows in work.lanes for piece in rows.slices)


def test_the_lane_that_raised_is_tried_alone_and_no_key_is_woken_beside_its_tuples() -> None:
    part = smaller(work_of([[5], [4, 3], [9]]), Step(1, wakes=False), "error", whole=False)
    assert part is not None and [rows.lane for rows in part.lanes] == [1]
    assert (tuples_of(part), part.wake, part.bury) == (7, 0, "")


def test_half_of_the_tuples_are_the_first_ones_of_the_lane() -> None:
    part = smaller(work_of([[2, 9, 4]]), Step(0, wakes=False), "error", whole=False)
    assert part is not None
    assert [(piece.offset, piece.first, piece.rows) for piece in part.lanes[0].slices] == [(0, 3, 2), (1, 3, 5)]


def test_keys_that_raised_are_woken_without_the_tuples_before_them() -> None:
    part = smaller(work_of([[5], [4]]), Step(0, wakes=True), "error", whole=False)
    assert part is not None and (tuples_of(part), part.wake, part.bury) == (0, 64, "")
    assert part.lanes[0].groups == (1, 2)


def test_the_rows_of_a_sink_are_buried_together() -> None:
    part = smaller(work_of([[5, 6]]), Step(0, wakes=False), "error", whole=True)
    assert part is not None and (tuples_of(part), part.bury) == (11, "error")


def test_nothing_is_left_to_try_when_burying_raised() -> None:
    part = smaller(work_of([[1]]), Step(0, wakes=False), "error", whole=False)
    assert part is not None and part.bury == "error"
    assert smaller(part, Step(0, wakes=False), "error", whole=False) is None


lanes = st.lists(st.lists(st.integers(1, 500), max_size=4), min_size=1, max_size=4)


@given(lanes, st.none() | st.integers(0, 70), st.data())
def test_a_work_that_always_raises_ends_with_one_tuple_or_one_key(
    counts: list[list[int]], wake: int | None, data: Any
) -> None:
    work = work_of(counts, wake)
    for _ in range(30):
        lane = data.draw(st.sampled_from([rows.lane for rows in work.lanes]))
        step = data.draw(st.none() | st.builds(Step, st.just(lane), st.booleans()))
        part = smaller(work, step, "error", whole=False)
        if part is None:
            break
        work = part
    else:
        raise AssertionError("it goes on for ever")
    if work.bury:
        assert tuples_of(work) == 1 or (not tuples_of(work) and work.wake == 1)
    else:
        assert work.wake == 0
