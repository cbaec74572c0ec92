"""Key groups: who owns which keys, changed with the fewest moves, and what waits of a group moves in order."""

from collections import Counter
from itertools import count
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from routes import PATIENT

from elastream import Topology, groupings, sources, workload
from elastream.errors import TopologyError
from elastream.lanes.entries import Entry
from elastream.lanes.runs import are_whole, cut, packed, shared_out, unpacked
from elastream.lanes.segments import Appended, LaneId, SchemaId, Slice
from elastream.lanes.state import LedgerState
from elastream.routing.key_groups import dealt_out, moves, rebalanced
from elastream.topology.groupings import KEY_GROUPS

SIZES = st.integers(1, KEY_GROUPS)


@PATIENT
@given(sizes=st.lists(SIZES, min_size=1, max_size=6))
def test_groups_stay_even_and_no_more_of_them_move_than_must(sizes: list[int]) -> None:
    owners = dealt_out(range(sizes[0]))
    for size in sizes:
        after = rebalanced(owners, size)
        counts = Counter(after)
        assert set(counts) == set(range(size))
        assert max(counts.values()) - min(counts.values()) <= 1
        before = Counter(owners)
        # Whoever has more than the largest share must give up the rest, and whoever goes gives up all.
        least = sum(max(0, n - ceil(KEY_GROUPS / size)) if lane < size else n for lane, n in before.items())
        missing = sum(max(0, KEY_GROUPS // size - before[lane]) for lane in range(size))
        assert len(moves(owners, after)) == max(least, missing)
        owners = after


@pytest.mark.parametrize("size", range(1, KEY_GROUPS))
def test_one_replica_more_takes_its_share_and_nothing_else_moves(size: int) -> None:
    owners = dealt_out(range(size))
    moved = moves(owners, rebalanced(owners, size + 1))
    assert len(moved) <= ceil(KEY_GROUPS / (size + 1))
    assert {lane for _, lane in moved} == {size}


def test_groups_go_to_lanes_nearby_where_there_is_room() -> None:
    owners = dealt_out(range(2))
    after = rebalanced(owners, 8, near=lambda giver, taker: giver % 2 == taker % 2)
    assert all(owners[group] % 2 == lane % 2 for group, lane in moves(owners, after))
    # Where nobody is near, they go all the same.
    assert Counter(rebalanced([0] * KEY_GROUPS, 4, near=lambda giver, taker: False)) == dict.fromkeys(range(4), 32)


def test_more_replicas_than_groups_are_refused_where_keys_choose() -> None:
    flow = Topology("t")
    flow.source("in", sources.replay(workload.constant(1, 1)))
    flow.map("a", lambda row: row, after="in", grouping=groupings.fields("id"), replicas=(1, 200))
    flow.output("out", after="a")
    with pytest.raises(TopologyError, match=r"'a': keys fall into 128 groups.*got 200; set replicas=\(1, 128\)"):
        flow.build()


RUNS = st.lists(st.tuples(st.integers(0, KEY_GROUPS - 1), st.integers(1, 5)), min_size=1, max_size=12)


@PATIENT
@given(runs=RUNS, data=st.data())
def test_runs_tell_the_group_of_every_row_of_every_part(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    groups = [group for group, rows in runs for _ in range(rows)]
    assert list(unpacked(packed(runs))) == runs
    first = data.draw(st.integers(0, len(groups) - 1))
    rows = data.draw(st.integers(1, len(groups) - first))
    assert [g for g, n in cut(packed(runs), first, rows) for _ in range(n)] == groups[first : first + rows]
    parts = shared_out(packed(runs), first, rows, lambda group: group % 3)
    assert [lane for lane, _, n in parts for _ in range(n)] == [g % 3 for g in groups[first : first + rows]]
    assert [at for _, start, n in parts for at in range(start, start + n)] == list(range(first, first + rows))
    assert are_whole(packed(runs), len(groups), KEY_GROUPS)
    assert not are_whole(packed(runs), len(groups) + 1, KEY_GROUPS)
    assert not are_whole(packed(runs)[:-1], 0, KEY_GROUPS) and not are_whole(packed([(200, 9)]), 1, KEY_GROUPS)


def test_a_run_of_millions_of_rows_is_stored_as_several() -> None:
    runs = packed([(3, 10_000_000)])
    assert [g for g, _ in unpacked(runs)] == [3, 3, 3] and sum(n for _, n in unpacked(runs)) == 10_000_000


class Written:
    """Tuples of key groups as they were appended, and where each waits by the ledger's state."""

    def __init__(self, size: int) -> None:
        self.state = LedgerState()
        self._numbers = count()
        self.tuples: dict[tuple[str, int], int] = {}
        self.groups: list[int] = []
        self.entries: list[Entry] = []
        self.apply(sizes={"a": size}, owners={"a": dict(enumerate(dealt_out(range(size))))})

    def apply(self, **what: object) -> None:
        entry = Entry(self.state.entry + 1, 0.0, **what)  # type: ignore[arg-type]
        self.entries.append(entry)
        self.state.apply(entry)

    def append(self, groups: list[int]) -> None:
        """One tuple per group, for the lanes that own them."""
        segment, owners, pieces = f"h-{next(self._numbers)}.arrow", self.state.owners["a"], []
        for lane in sorted({owners[group] for group in groups}):
            mine = sorted(group for group in groups if owners[group] == lane)
            runs = packed((group, 1) for group in mine)
            for row, group in enumerate(mine):
                self.tuples[f"{lane}-{segment}", row] = len(self.groups)
                self.groups.append(group)
            pieces.append(Appended("a", lane, Slice(f"{lane}-{segment}", 0, 9, 0, SchemaId("s"), 0, len(mine), runs)))
        self.apply(appended=pieces)

    def move(self, size: int) -> None:
        owners = self.state.owners["a"]
        self.apply(sizes={"a": size}, owners={"a": dict(moves(owners, rebalanced(owners, size)))})

    def waiting(self, state: LedgerState) -> dict[int, list[int]]:
        """Per lane the tuples in it, in order."""
        return {
            lane.lane: [
                self.tuples[piece.segment, row]
                for piece in queue.slices
                for row in range(piece.first, piece.first + piece.rows)
            ]
            for lane, queue in state.lanes.items()
            if queue.slices
        }


Step = list[int] | int | tuple[int, int]

STEPS = st.lists(
    st.lists(st.integers(0, KEY_GROUPS - 1), min_size=1, max_size=20)
    | st.integers(1, 9)
    | st.tuples(st.integers(0, 8), st.integers(1, 7)),
    max_size=14,
)
"""Groups that come, a number of replicas, or (lane, how many it serves)."""


@PATIENT
@given(size=st.integers(1, 9), steps=STEPS)
def test_what_waits_moves_with_its_group_in_order_and_nothing_is_lost(size: int, steps: list[Step]) -> None:
    written, served = Written(size), list[int]()
    for step in steps:
        if isinstance(step, list):
            written.append(step)
        elif isinstance(step, int):
            written.move(step)
        else:
            lane, rows = step
            queue = written.state.queue(LaneId("a", lane))
            taken = written.waiting(written.state).get(lane, [])[: min(rows, len(queue))]
            if taken:
                served += taken
                written.apply(consumed=[("a", lane, len(taken))])
    waiting = written.waiting(written.state)
    found = [*served, *(number for lane in waiting.values() for number in lane)]
    assert sorted(found) == list(range(len(written.groups)))
    for group in set(written.groups):
        # The tuples of a group stand in one lane, its owner's, behind those that were served, in the order they came.
        assert [n for n in found if written.groups[n] == group] == [
            n for n in range(len(written.groups)) if written.groups[n] == group
        ]
        lanes = {lane for lane, numbers in waiting.items() for n in numbers if written.groups[n] == group}
        assert lanes <= {written.state.owners["a"][group]}
    queued = sum(map(len, waiting.values()))
    assert sum(map(len, written.state.lanes.values())) == queued
    again = LedgerState.restored(written.state.snapshot())
    assert written.waiting(again) == waiting and again.owners == written.state.owners
    assert again.segments() == written.state.segments()
    replayed = LedgerState()
    for entry in written.entries:
        replayed.apply(entry)
    assert written.waiting(replayed) == waiting
