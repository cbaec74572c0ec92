"""The queue of a lane."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes_on_disk import PATIENT, Row, rows_of, slice_of

from elastream.lanes import LaneQueue


@PATIENT
@given(
    st.lists(
        st.tuples(st.just("append"), st.integers(1, 6)) | st.tuples(st.just("consume"), st.integers(0, 12)), max_size=40
    )
)
def test_a_lane_is_first_in_first_out_like_a_list(operations: list[tuple[str, int]]) -> None:
    queue, oracle = LaneQueue(), list[Row]()
    appended = consumed = 0
    for number, (operation, rows) in enumerate(operations):
        if operation == "append":
            piece = slice_of("seg", number, rows)
            queue.append(piece)
            oracle += rows_of([piece])
            appended += rows
        else:
            taken = min(rows, len(oracle))
            batches_before = {row[:2] for row in oracle}
            done = queue.consume(taken)
            del oracle[:taken]
            consumed += taken
            assert {(p.segment, p.offset) for p in done} == batches_before - {row[:2] for row in oracle}
        assert (queue.appended, queue.consumed, len(queue)) == (appended, consumed, len(oracle))
        for wanted in (0, 1, rows, len(oracle), len(oracle) + 5):
            assert rows_of(queue.peek(wanted)) == oracle[:wanted]


def test_a_lane_does_not_give_more_than_waits() -> None:
    queue = LaneQueue()
    queue.append(slice_of("seg", 0, 3))
    with pytest.raises(ValueError, match="consume 4 of 3 tuples"):
        queue.consume(4)
    assert rows_of(queue.peek(9)) == [("seg", 0, 0), ("seg", 0, 1), ("seg", 0, 2)]


def test_looking_at_a_lane_takes_nothing_and_cuts_nothing() -> None:
    queue = LaneQueue()
    queue.append(slice_of("seg", 0, 5))
    assert list(queue.peek(2)) == [slice_of("seg", 0, 2)]
    assert list(queue.slices) == [slice_of("seg", 0, 5)]


@PATIENT
@given(st.lists(st.integers(1, 6), max_size=10), st.integers(0, 30), st.integers(0, 400))
def test_a_portion_is_as_much_as_fits_and_at_least_the_first_batch(sizes: list[int], rows: int, size: int) -> None:
    queue = LaneQueue()
    for number, piece_rows in enumerate(sizes):
        queue.append(slice_of("seg", number, piece_rows))
    # Every batch has 64 bytes.
    batches = max(1, size // 64)
    assert queue.portion(rows, size) == min(rows, sum(sizes[:batches]))
