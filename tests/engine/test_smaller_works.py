"""Parts of a work that raised: every way ends, and ends with one tuple, one key or the rows of a sink."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from elastream.engine.messages import BuryTimer, BuryTuples, LaneRows, LaneWork, ServeWork, WakeWork
from elastream.engine.worker.smaller_works import Step, smaller
from elastream.lanes.segments import SchemaId, Slice


def work_of(lanes: list[list[int]], *, wakes: bool = True) -> ServeWork:
    """A work of lanes with slices of so many rows."""
    rows = [
        LaneRows(number, 0, [Slice("s", at, 1, 0, SchemaId("x"), 3, count) for at, count in enumerate(counts)], (1, 2))
        for number, counts in enumerate(lanes)
    ]
    return ServeWork(1, "a", rows, 7.0, 0.05, 10, True, 0, watermark_s=5.0, wakes=wakes)


def tuples_in(*lanes: LaneRows) -> int:
    return sum(piece.rows for rows in lanes for piece in rows.slices)


def part_of(work: LaneWork, step: Step, *, whole: bool = False) -> LaneWork | None:
    return smaller(work, step, "error", whole=whole)


def test_the_lane_that_raised_is_tried_alone_and_no_key_is_woken_beside_its_tuples() -> None:
    part = part_of(work_of([[5], [4, 3], [9]]), Step(1, wakes=False))
    assert isinstance(part, ServeWork) and [rows.lane for rows in part.lanes] == [1]
    assert (tuples_in(*part.lanes), part.wakes) == (7, False)


def test_half_of_the_tuples_are_the_first_ones_of_the_lane() -> None:
    part = part_of(work_of([[2, 9, 4]]), Step(0, wakes=False))
    assert isinstance(part, ServeWork)
    assert [(piece.offset, piece.first, piece.rows) for piece in part.lanes[0].slices] == [(0, 3, 2), (1, 3, 5)]


def test_keys_that_raised_are_woken_without_the_tuples_before_them() -> None:
    part = part_of(work_of([[5], [4]]), Step(1, wakes=True))
    assert part == WakeWork(1, "a", 1, (1, 2), 7.0, 5.0, 64, True, 0)


def test_the_key_that_raises_alone_is_buried() -> None:
    part = part_of(WakeWork(1, "a", 1, (1, 2), 7.0, 5.0, 1, True, 0), Step(1, wakes=True))
    assert part == BuryTimer(1, "a", 1, (1, 2), 7.0, 5.0, "error")


def test_the_rows_of_a_sink_are_buried_together() -> None:
    part = part_of(work_of([[5, 6]]), Step(0, wakes=False), whole=True)
    assert isinstance(part, BuryTuples) and (tuples_in(part.lane), part.error) == (11, "error")


def test_nothing_is_left_to_try_when_burying_raised() -> None:
    part = part_of(work_of([[1]]), Step(0, wakes=False))
    assert isinstance(part, BuryTuples)
    assert part_of(part, Step(0, wakes=False)) is None


lanes = st.lists(st.lists(st.integers(1, 500), max_size=4), min_size=1, max_size=4)


@given(lanes, st.booleans(), st.data())
def test_a_work_that_always_raises_ends_with_one_tuple_or_one_key(
    counts: list[list[int]], wakes: bool, data: Any
) -> None:
    work: LaneWork = work_of(counts, wakes=wakes)
    for _ in range(30):
        numbers = [rows.lane for rows in work.lanes] if isinstance(work, ServeWork) else [0]
        step = data.draw(st.none() | st.builds(Step, st.sampled_from(numbers), st.booleans()))
        part = smaller(work, step, "error", whole=False)
        if part is None:
            break
        work = part
    else:
        raise AssertionError("it goes on for ever")
    if isinstance(work, BuryTuples):
        assert tuples_in(work.lane) == 1
    else:
        assert isinstance(work, BuryTimer) or (isinstance(work, ServeWork) and not work.wakes)
