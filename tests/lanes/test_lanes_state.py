"""The state of a ledger beside plain lists, and as it is written and read again."""

from collections import Counter
from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from lanes_on_disk import PATIENT, Row, rows_of, slice_of, told

from elastream.lanes import Appended, Entry, Given, LaneId, LedgerState, OperatorCounts, SchemaId
from elastream.lanes.entries import GroupWhole, Reread, Snapshot, StateChange
from elastream.lanes.runs import packed
from elastream.lanes.segments import Slice

_OPERATORS = st.sampled_from("ab")
_LANES = st.integers(0, 2)
_SOURCES = st.sampled_from(["topic", "other"])
_MEMORIES = st.dictionaries(st.sampled_from(["t/0", "t/1", "t/2"]), st.integers(0, 9), min_size=1)


class StateAgainstLists(RuleBasedStateMachine):
    """The state beside plain lists of rows, one list per lane."""

    def __init__(self) -> None:
        super().__init__()
        self.state = LedgerState()
        self.lists: dict[LaneId, list[Row]] = {}
        self.consumed: Counter[LaneId] = Counter()
        self.totals = OperatorCounts()
        self.given: dict[LaneId, Given] = {}
        self.sizes: dict[str, int] = {}
        self.reread: list[Row] = []
        self.memories: dict[str, dict[str, int]] = {}
        self.offsets = count()

    @rule(
        writes=st.lists(st.tuples(_OPERATORS, _LANES, st.integers(1, 5), st.booleans()), max_size=6),
        takes=st.lists(st.tuples(_OPERATORS, _LANES, st.integers(1, 9)), max_size=4),
        gives=st.lists(st.tuples(_OPERATORS, _LANES, st.integers(1, 9)), max_size=2),
        reread=st.none() | st.integers(0, 3),
        sizes=st.dictionaries(_OPERATORS, st.integers(1, 4), max_size=1),
        memories=st.dictionaries(_SOURCES, _MEMORIES, max_size=2),
        whole=st.booleans(),
    )
    def tick(
        self,
        writes: list[tuple[str, int, int, bool]],
        takes: list[tuple[str, int, int]],
        gives: list[tuple[str, int, int]],
        reread: int | None,
        sizes: dict[str, int],
        memories: dict[str, dict[str, int]],
        whole: bool,
    ) -> None:
        number = self.state.entry + 1
        before = self._segments()
        # A host goes on writing to a file of which it has told before; a task of the edge writes its own.
        appended = [
            Appended(op, lane, slice_of("host" if old else f"{number}-x", next(self.offsets), rows))
            for op, lane, rows, old in writes
        ]
        for operator, lane, piece in appended:
            self.lists.setdefault(LaneId(operator, lane), []).extend(rows_of([piece]))
        consumed = []
        pieces = []
        for operator, lane_number, rows in takes:
            lane_id = LaneId(operator, lane_number)
            queue = self.lists.setdefault(lane_id, [])
            rows = min(rows, len(queue))
            pieces += [slice_of(segment, offset, 1, at) for segment, offset, at in queue[:rows]]
            del queue[:rows]
            self.consumed[lane_id] += rows
            self.given.pop(lane_id, None)
            consumed.append((operator, lane_number, rows))
        given = [Given(op, lane, rows, number, float(number), 2.5) for op, lane, rows in gives]
        self.given.update({LaneId(one.operator, one.lane): one for one in given})
        again = None
        if reread is not None:
            again = [Reread(number, "a", 0, 0, float(number), None, pieces[:reread])] if reread else []
            self.reread = rows_of(pieces[:reread])
        counts = OperatorCounts(entered=sum(a.slice.rows for a in appended), processed=2, busy_s=0.25)
        self.totals.add(counts)
        self.sizes.update(sizes)
        sources: dict[str, dict[str, Any]] = {"read": {"next": number}}
        for source, changed in memories.items():
            self.memories[source] = self.memories.get(source, {}) | changed
            if whole:
                # As an earlier version wrote them.
                sources[source] = {"query": "q", "once": self.memories[source]}
        applied = self.state.apply(
            Entry(
                number,
                float(number),
                consumed,
                appended,
                {"a": counts},
                sources,
                given,
                sizes,
                {SchemaId(f"s{number % 3}"): f"text {number}"},
                {"a": (0.5, float(number))},
                ["out"] if number % 2 else None,
                "query" if number % 3 else None,
                number,
                number if number % 4 else -1,
                again,
                memories={} if whole else memories,
            )
        )
        assert len(set(applied.freed)) == len(applied.freed)
        assert set(applied.freed) == (before | {a.slice.segment for a in appended}) - self._segments()
        assert applied.filled == [LaneId(a.operator, a.lane) for a in appended]

    @rule()
    def write_and_read_again(self) -> None:
        before = told(self.state)
        stored = msgspec.msgpack.encode(self.state.snapshot())
        self.state = LedgerState.restored(msgspec.msgpack.decode(stored, type=Snapshot))
        assert told(self.state) == before
        assert msgspec.msgpack.encode(self.state.snapshot()) == stored

    @rule(skipped=st.sampled_from([-1, 0, 2, 5]))
    def an_entry_out_of_turn_is_refused(self, skipped: int) -> None:
        before = told(self.state)
        with pytest.raises(ValueError, match=rf"entry {self.state.entry + skipped} after {self.state.entry}"):
            self.state.apply(Entry(self.state.entry + skipped, 0.0, sizes={"a": 9}))
        assert told(self.state) == before

    @invariant()
    def the_same_rows_wait_in_the_same_order(self) -> None:
        for lane, rows in self.lists.items():
            queue = self.state.queue(lane)
            assert rows_of(queue.peek(10**6)) == rows
            assert len(queue) == len(rows)
            assert queue.consumed == self.consumed[lane]

    @invariant()
    def what_is_counted_on_the_way_is_what_a_recount_gives(self) -> None:
        for operator in "abc":
            lanes = {lane.lane: queue for lane, queue in self.state.lanes.items() if lane.operator == operator}
            assert self.state.lanes_of(operator) == lanes
            assert self.state.queued(operator) == sum(map(len, lanes.values()))
            assert self.state.queued(operator) == sum(
                len(rows) for lane, rows in self.lists.items() if lane.operator == operator
            )

    @invariant()
    def segments_in_use_are_those_of_which_rows_wait_or_may_be_read_again(self) -> None:
        assert self.state.segments() == self._segments()
        assert all(map(self.state.names, self._segments()))
        assert not self.state.names("never-written")

    @invariant()
    def the_rest_is_what_the_entries_said(self) -> None:
        assert self.state.given == self.given
        assert self.state.sizes == self.sizes
        assert self.state.totals.get("a", OperatorCounts()) == self.totals
        assert len(self.state.schemas) == min(3, self.state.entry + 1)
        assert self.state.memories == self.memories
        assert not any("once" in known for known in self.state.sources.values())

    def _segments(self) -> set[str]:
        return {row[0] for rows in (*self.lists.values(), self.reread) for row in rows}


TestStateAgainstLists = StateAgainstLists.TestCase
TestStateAgainstLists.settings = settings(PATIENT, max_examples=25, stateful_step_count=25)


def test_an_entry_is_read_as_it_was_written() -> None:
    piece = slice_of("seg", 64, 3, first=2)
    entry = Entry(
        7,
        12.5,
        [("a", 1, 3)],
        [Appended("b", 0, piece)],
        {"a": OperatorCounts(1, 2, 3, 4, 5, 6, 7, 8, 0.5, 0.25)},
        {"read": {"next": 3, "offsets": {"0": [1, 2]}}},
        [Given("s", 0, 5, 7, 12.0, None)],
        {"a": 2},
        {SchemaId("s"): "text"},
        {"a": (0.1, 2.0)},
        ["out"],
        "query",
        4,
        5,
        [Reread(5, "a", 0, 2, 1.5, 2.5, [piece])],
        {"a": {3: 1, 127: 0}},
        1,
        {"count": "columns"},
        ["last"],
        {"count": 12.5},
        [StateChange("count", piece, b"sums")],
        [GroupWhole("count", 3, 10, 200, [piece], 7, 12, 13)],
        {"topic": {"t/0": {"run": [3, {"out-0": "Ag=="}]}}},
    )
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(entry), type=Entry) == entry


def state_of(*pieces: Slice) -> LedgerState:
    """One keyed operator with these changes."""
    state = LedgerState()
    state.apply(Entry(0, 0.0, states={"count": "columns"}, changes=[StateChange("count", piece) for piece in pieces]))
    return state


def test_a_snapshot_keeps_the_changes_that_were_committed_after_it_was_asked_for() -> None:
    runs = packed([(3, 4)])
    pieces = [slice_of(f"change {number}", 0, 4)._replace(runs=runs) for number in range(3)]
    state = state_of(*pieces[:2])
    whole = GroupWhole("count", 3, 4, 100, [slice_of("whole", 0, 4)], since=1, checksum=5, before=5)
    freed = state.apply(Entry(1, 0.0, wholes=[whole], changes=[StateChange("count", pieces[2], b"sums")])).freed
    assert freed == ["change 0"]
    log = LedgerState.restored(state.snapshot()).logs["count"]
    assert [(one.number, one.slice.segment, one.sums) for one in log.changes] == [
        (1, "change 1", b""),
        (2, "change 2", b"sums"),
    ]
    assert (log.whole(3).since, log.whole(3).checksum) == (1, 5)
    stale = whole._replace(since=0, slices=[slice_of("stale", 0, 4)])
    assert state.apply(Entry(2, 0.0, wholes=[stale])).freed == ["stale"] and not state.names("stale")


def test_a_snapshot_in_an_entry_of_an_older_version_is_as_of_that_entry() -> None:
    runs = packed([(3, 4)])
    change, piece = slice_of("change", 0, 4)._replace(runs=runs), slice_of("whole", 0, 4)
    data = msgspec.msgpack.encode(Entry(1, 0.0))
    fields: list[Any] = msgspec.msgpack.decode(data)
    names = Entry.__struct_fields__
    fields[names.index("changes")] = [["count", [*change]]]
    fields[names.index("wholes")] = [["count", 3, 4, 100, [[*piece]]]]
    old = msgspec.msgpack.decode(msgspec.msgpack.encode(fields), type=Entry)
    assert old.wholes == [GroupWhole("count", 3, 4, 100, [piece])] and old.changes == [StateChange("count", change)]
    state = state_of(change._replace(segment="before"))
    assert state.apply(old).freed == ["before"]
    assert state.logs["count"].whole(3).since == 1 and [one.number for one in state.logs["count"].changes] == [1]


def test_a_segment_is_freed_when_the_last_of_its_slices_is() -> None:
    state = LedgerState()
    state.apply(
        Entry(0, 0.0, appended=[Appended("a", 0, slice_of("seg", 0, 3)), Appended("b", 0, slice_of("seg", 64, 3))])
    )
    assert state.apply(Entry(1, 0.0, [("a", 0, 3)])).freed == []
    assert state.apply(Entry(2, 0.0, [("b", 0, 2)])).freed == []
    assert state.apply(Entry(3, 0.0, [("b", 0, 1)])).freed == ["seg"]


def test_what_a_batch_took_stays_until_the_next_batch_is_committed() -> None:
    state = LedgerState()
    first, second = slice_of("one", 0, 3), slice_of("two", 0, 3)
    state.apply(Entry(0, 0.0, appended=[Appended("a", 0, first), Appended("a", 0, second)]))
    assert state.apply(Entry(1, 0.0, [("a", 0, 3)], reread=[Reread(0, "a", 0, 0, 0.0, None, [first])])).freed == []
    assert state.queued("a") == 3
    assert state.apply(Entry(2, 0.0)).freed == []
    assert state.apply(Entry(3, 0.0, [("a", 0, 3)], reread=[Reread(1, "a", 0, 3, 0.0, None, [second])])).freed == [
        "one"
    ]
    assert state.segments() == {"two"}
    # Also after a restart.
    assert LedgerState.restored(state.snapshot()).segments() == {"two"}


def test_a_snapshot_that_has_a_memory_in_its_source_is_understood() -> None:
    state = LedgerState()
    state.apply(Entry(0, 0.0, sources={"read": {"query": "q"}}))
    old = msgspec.structs.replace(state.snapshot(), sources={"read": {"query": "q", "once": {"t/0": 1, "t/1": 2}}})
    found = LedgerState.restored(old)
    found.apply(Entry(1, 0.0, memories={"read": {"t/1": 3}}))
    assert found.memories == {"read": {"t/0": 1, "t/1": 3}} and found.sources == {"read": {"query": "q"}}


def test_a_state_that_was_restored_does_not_change_the_one_it_was_made_from() -> None:
    state = LedgerState()
    counts, memory = {"a": OperatorCounts(entered=1)}, {"read": {"t/0": 1}}
    state.apply(Entry(0, 0.0, counts=counts, sources={"read": {"next": 1}}, memories=memory))
    copy = LedgerState.restored(state.snapshot())
    counts, memory = {"a": OperatorCounts(entered=5)}, {"read": {"t/0": 2}}
    copy.apply(Entry(1, 0.0, counts=counts, sources={"read": {"next": 2}}, memories=memory))
    assert state.memories == {"read": {"t/0": 1}} and copy.memories == {"read": {"t/0": 2}}
    assert state.totals["a"].entered == 1
    assert state.sources == {"read": {"next": 1}}
    assert copy.totals["a"].entered == 6
