"""Works about states: in which order hosts get them, and which must not meet."""

from typing import Any

from elastream import Topology, sources
from elastream.engine.messages import Receipt
from elastream.engine.tick.roster import Roster, Seats
from elastream.engine.tick.state_keeper import StateKeeper, StateTask, Task
from elastream.lanes import LaneId, LedgerState
from elastream.lanes.runs import packed
from elastream.lanes.segments import SchemaId, Slice
from elastream.lanes.state_log import StateLog
from elastream.workload import constant

LANE = LaneId("count", 0)


def count(key: Any, rows: Any, state: Any) -> None: ...


def keeper() -> StateKeeper:
    flow = Topology("kept").source("in", sources.replay(constant(1, 1)))
    flow.keyed("count", count, after="in", key="id", state="n long", replicas=(1, 4))
    state, roster = LedgerState(), Roster()
    state.owners["count"], state.sizes["count"] = [0] * 128, 1
    state.logs["count"] = StateLog()
    state.logs["count"].add(Slice("file", 0, 0, 0, SchemaId("x"), 0, 2, packed([(1, 1), (2, 1)])))
    for host in (0, 1):
        roster.came(Seats(host, f"incarnation {host}"))
    roster.settlers = frozenset({"count"})
    roster.move(LANE, 1)
    return StateKeeper(flow.output("out", after="count").build(), state, roster, 1.0)


def copy(*groups: int) -> StateTask:
    return StateTask(Task.COPY, "count", groups, 1)


def load(*groups: int) -> StateTask:
    return StateTask(Task.LOAD, "count", groups, 1, LANE)


def test_what_a_lane_stands_still_for_goes_first_and_copies_go_by_few() -> None:
    kept = keeper()
    for task in (copy(3), copy(4), copy(5), load(1)):
        kept.ask(task)
    sent = []
    for task in kept.tasks():
        kept.sent(task)
        sent.append(task)
    assert sent == [load(1), copy(3)], "two at a time, the urgent one among them"


def test_a_group_is_not_learned_twice_at_once_in_a_host() -> None:
    kept = keeper()
    kept.ask(copy(1, 2))
    copying = kept.sent(copy(1, 2))
    kept.ask(load(1))
    assert list(kept.tasks()) == [], "the copy would write older states over newer ones when it ends"
    kept.done(copying, Receipt(1))
    assert list(kept.tasks()) == [load(1)]


def test_a_copy_for_a_host_that_has_taken_the_group_over_is_not_made_any_more() -> None:
    kept = keeper()
    kept.ask(copy(1))
    kept.ask(load(1))
    loading = kept.sent(load(1))
    kept.done(loading, Receipt(1))
    assert kept.live_host("count", 1) == 1
    assert list(kept.tasks()) == []
    assert kept.ask(copy(1)), "and nobody waits for it"
