"""The queue of a lane, and the book of all of them beside plain lists."""

import json
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from lanes_on_disk import PATIENT, Row, as_json, rows_of, slice_of

from elastream.lanes import Appended, Book, Entry, LaneId, LaneQueue


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


class BookAgainstLists(RuleBasedStateMachine):
    """The book beside plain lists of rows, one list a lane."""

    def __init__(self) -> None:
        super().__init__()
        self.book = Book()
        self.lists: dict[LaneId, list[Row]] = {}
        self.consumed: dict[LaneId, int] = {}
        self.entered = 0
        self.offsets = count()
        self.all_freed: list[str] = []

    @rule(
        writes=st.lists(
            st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(1, 5), st.integers(0, 1)), max_size=6
        ),
        takes=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(1, 9)), max_size=4),
    )
    def tick(self, writes: list[tuple[str, int, int, int]], takes: list[tuple[str, int, int]]) -> None:
        tick = self.book.tick + 1
        before = self._segments()
        appended = tuple(
            Appended(operator, lane, slice_of(f"{tick}-{segment}", next(self.offsets), rows))
            for operator, lane, rows, segment in writes
        )
        for operator, lane, piece in appended:
            self.lists.setdefault(LaneId(operator, lane), []).extend(rows_of([piece]))
            self.entered += piece.rows
        consumed = []
        for operator, lane, rows in takes:
            queue = self.lists.setdefault(LaneId(operator, lane), [])
            rows = min(rows, len(queue))
            del queue[:rows]
            self.consumed[LaneId(operator, lane)] = self.consumed.get(LaneId(operator, lane), 0) + rows
            consumed.append((operator, lane, rows))
        counts: dict[str, dict[str, float]] = {"a": {"entered": sum(a.slice.rows for a in appended)}}
        entry = Entry(tick, "run", tick, float(tick), tuple(consumed), appended, counts=counts, plan={"n": tick})
        freed = self.book.apply(entry)
        assert len(set(freed)) == len(freed)
        assert set(freed) == (before | {a.slice.segment for a in appended}) - self._segments()
        self.all_freed += freed

    @rule()
    def reload(self) -> None:
        stored = json.loads(json.dumps(self.book.to_json()))
        self.book = Book.from_json(stored)
        assert as_json(self.book) == stored

    @rule(skipped=st.integers(2, 5))
    def an_entry_out_of_turn_is_refused(self, skipped: int) -> None:
        with pytest.raises(ValueError, match=rf"entry {self.book.tick + skipped} after {self.book.tick}"):
            self.book.apply(Entry(self.book.tick + skipped, "run", 0, 0.0))

    @invariant()
    def the_same_rows_wait_in_the_same_order(self) -> None:
        for lane, rows in self.lists.items():
            queue = self.book.queue(lane)
            assert rows_of(queue.peek(10**6)) == rows
            assert len(queue) == len(rows)
            assert queue.consumed == self.consumed.get(lane, 0)
        for operator in "ab":
            assert self.book.queued(operator) == sum(
                len(q) for lane, q in self.lists.items() if lane.operator == operator
            )

    @invariant()
    def segments_in_use_are_those_of_which_rows_wait(self) -> None:
        assert self.book.segments() == self._segments()
        assert len(set(self.all_freed)) == len(self.all_freed)

    @invariant()
    def totals_add_up(self) -> None:
        assert self.book.totals.get("a", {}).get("entered", 0) == self.entered

    def _segments(self) -> set[str]:
        return {row[0] for rows in self.lists.values() for row in rows}


TestBookAgainstLists = BookAgainstLists.TestCase
TestBookAgainstLists.settings = settings(PATIENT, max_examples=25, stateful_step_count=25)
