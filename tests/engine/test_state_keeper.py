"""Works about states: in which order hosts get them, and which must not meet."""

from collections.abc import Callable
from typing import Any

import pytest
from late_hosts import LateHosts

from elastream import Topology, sources
from elastream.engine.clock import VirtualClock
from elastream.engine.messages import Problem, Receipt
from elastream.engine.tick.retirement import Retirement
from elastream.engine.tick.roster import HostId, Roster, Seats
from elastream.engine.tick.state_keeper import StateKeeper
from elastream.engine.tick.state_tasks import SentTask, StateTask, Task
from elastream.engine.tick.transfers import Transfers
from elastream.lanes import Entry, LaneId, LedgerState
from elastream.lanes.entries import GroupWhole, StateChange
from elastream.lanes.runs import packed
from elastream.lanes.segments import SchemaId, Slice
from elastream.lanes.state_log import StateLog
from elastream.workload import constant

LANE = LaneId("count", 0)
HOSTS = [HostId(number, f"incarnation {number}") for number in (0, 1)]


def count(key: Any, rows: Any, state: Any) -> None: ...


def keeper(ttl_s: float | None = None) -> StateKeeper:
    flow = Topology("kept").source("in", sources.replay(constant(1, 1)))
    flow.keyed("count", count, after="in", key="id", state="n long", replicas=(1, 4), ttl_s=ttl_s)
    state, roster = LedgerState(), Roster()
    state.owners["count"], state.sizes["count"] = [0] * 128, 1
    state.logs["count"] = StateLog()
    state.logs["count"].add(Slice("file", 0, 0, 0, SchemaId("x"), 0, 2, packed([(1, 1), (2, 1)])))
    for host in (0, 1):
        roster.came(Seats(host, HOSTS[host].incarnation))
    roster.settlers = frozenset({"count"})
    roster.move(LANE, 1)
    return StateKeeper(flow.output("out", after="count").build(), state, roster, 1.0)


def copy(*groups: int) -> StateTask:
    return StateTask(Task.COPY, "count", groups, HOSTS[1])


def load(*groups: int) -> StateTask:
    return StateTask(Task.LOAD, "count", groups, HOSTS[1], LANE)


def send(kept: StateKeeper, task: StateTask) -> SentTask:
    return kept.sent(task, kept.work(task, 1))


def test_what_a_lane_stands_still_for_goes_first_and_copies_go_by_few() -> None:
    kept = keeper()
    for task in (copy(3), copy(4), copy(5), load(1)):
        kept.ask(task)
    sent = []
    for task in kept.tasks():
        send(kept, task)
        sent.append(task)
    assert sent == [load(1), copy(3)], "two at a time, the urgent one among them"


def test_a_group_is_not_learned_twice_at_once_in_a_host() -> None:
    kept = keeper()
    kept.ask(copy(1, 2))
    copying = send(kept, copy(1, 2))
    kept.ask(load(1))
    assert list(kept.tasks()) == [], "the copy would write older states over newer ones when it ends"
    kept.done(copying, Receipt(1))
    assert list(kept.tasks()) == [load(1)]


def test_a_copy_for_a_host_that_has_taken_the_group_over_is_not_made_any_more() -> None:
    kept = keeper()
    kept.ask(copy(1))
    kept.ask(load(1))
    loading = send(kept, load(1))
    kept.done(loading, Receipt(1))
    assert kept.live_host("count", 1) == HOSTS[1]
    assert list(kept.tasks()) == []
    assert kept.ask(copy(1)), "and nobody waits for it"


GONE, DAMAGED = (
    Problem("Damaged", "segment file: it is gone"),
    Problem("Damaged", "segment file: its checksum is wrong"),
)


def loaded(host: int = 1) -> StateKeeper:
    """Groups 1 and 2 are live in this host, where their lane lives."""
    kept = keeper()
    kept._roster.move(LANE, host)
    task = StateTask(Task.LOAD, "count", (1, 2), HOSTS[host], LANE)
    kept.ask(task)
    kept.done(send(kept, task), Receipt(1))
    return kept


def whole(*groups: int, host: int = 1) -> StateTask:
    return StateTask(Task.WHOLE, "count", groups, HOSTS[host], LANE)


def measure(*groups: int, host: int = 1) -> StateTask:
    return StateTask(Task.MEASURE, "count", groups, HOSTS[host])


def change(kept: StateKeeper, *groups: int) -> None:
    """One more change of some groups is committed."""
    piece = Slice("later", 0, 0, 0, SchemaId("x"), 0, len(groups), packed([(group, 1) for group in groups]))
    kept._state.apply(Entry(kept._state.entry + 1, 0.0, changes=[StateChange("count", piece)]))


def written(task: StateTask) -> Receipt:
    pieces = {
        group: Slice(f"whole {group}", 0, 0, 0, SchemaId("x"), 0, 1, packed([(group, 1)])) for group in task.groups
    }
    return Receipt(1, wholes=[GroupWhole("count", group, 1, 10, [piece]) for group, piece in pieces.items()])


def move_lane(kept: StateKeeper) -> None:
    kept.moved("count", (1, 2), HOSTS[0])
    kept._roster.move(LANE, 0)


def give_groups(kept: StateKeeper) -> None:
    """To another lane of the same host: nothing is transferred."""
    kept._state.move_groups("count", {1: 1, 2: 1})


def host_dies(kept: StateKeeper) -> None:
    """And another process has its number and the lane, all in one poll."""
    kept._roster.went(1)
    kept.host_went(1)
    kept._roster.came(Seats(1, "another incarnation"))
    kept._roster.move(LANE, 1)


@pytest.mark.parametrize(
    ("task", "happens"),
    [
        (whole(1, 2), move_lane),
        (whole(1, 2), give_groups),
        (whole(1, 2), host_dies),
        (measure(1, 2), move_lane),
        (measure(1, 2), host_dies),
        (StateTask(Task.COPY, "count", (1, 2), HOSTS[0]), move_lane),
    ],
)
def test_a_task_that_was_overtaken_is_neither_sent_nor_does_its_receipt_count(
    task: StateTask, happens: Callable[[StateKeeper], None]
) -> None:
    kept = loaded()
    assert kept.ask(task)
    assert list(kept.tasks()) == [task]
    happens(kept)
    assert list(kept.tasks()) == [] and not kept.is_open(task)
    # The same after it was sent.
    kept = loaded()
    kept.ask(task)
    sent, live = send(kept, task), kept.live_host("count", 1)
    happens(kept)
    told = written(task) if task.kind is Task.WHOLE else Receipt(1)
    receipt, unused = kept.check(sent, told)
    assert sent.refused and receipt == Receipt(1)
    assert unused == (["whole 1", "whole 2"] if task.kind is Task.WHOLE else [])
    kept.done(sent, receipt)
    assert not kept.is_open(task)
    hosts: dict[Callable[[StateKeeper], None], HostId | None] = {
        move_lane: HOSTS[0],
        give_groups: live,
        host_dies: None,
    }
    assert kept.live_host("count", 1) == hosts[happens]


@pytest.mark.parametrize("happens", [host_dies, give_groups, lambda kept: kept._roster.move(LANE, 0)])
def test_what_was_loaded_for_a_lane_that_is_elsewhere_by_now_makes_nothing_live(
    happens: Callable[[StateKeeper], None],
) -> None:
    kept = keeper()
    kept.ask(load(1, 2))
    happens(kept)
    assert list(kept.tasks()) == []
    kept = keeper()
    kept.ask(load(1, 2))
    sent = send(kept, load(1, 2))
    happens(kept)
    kept.done(sent, kept.check(sent, Receipt(1))[0])
    assert kept.live_host("count", 1) is None
    assert kept.copy_host(LANE) is None, "nor is it a copy"


def test_a_snapshot_is_as_of_the_number_at_which_it_was_sent() -> None:
    kept = loaded()
    kept.ask(whole(1))
    sent = send(kept, whole(1))
    # Of another group, in another lane.
    change(kept, 9)
    receipt, unused = kept.check(sent, written(whole(1)))
    assert [one.since for one in receipt.wholes] == [1] and unused == [] and not sent.refused


def test_a_snapshot_of_a_group_that_changed_meanwhile_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    kept = loaded()
    kept.ask(whole(1, 2))
    sent = send(kept, whole(1, 2))
    change(kept, 2)
    receipt, unused = kept.check(sent, written(whole(1, 2)))
    assert receipt.wholes == [] and unused == ["whole 1", "whole 2"]
    assert "key groups [2] changed while host 1 wrote them whole" in caplog.text


def test_a_lane_waits_while_its_host_learns_one_of_its_groups() -> None:
    kept = loaded(0)
    kept.ask(copy(1))
    copying = send(kept, copy(1))
    kept.moved("count", (1, 2), HOSTS[1])
    kept._roster.move(LANE, 1)
    assert not kept.prepare(LANE), "the copy would undo what the lane's works change"
    kept.done(copying, kept.check(copying, Receipt(1))[0])
    assert kept.prepare(LANE)


@pytest.mark.parametrize("returns", [True, False])
def test_files_that_a_task_reads_are_in_use_until_its_receipt_or_its_hosts_end(returns: bool) -> None:
    kept = keeper()
    kept.ask(copy(1))
    sent = send(kept, copy(1))
    assert set(kept.segments_in_use) == {"file"}
    if returns:
        kept.done(sent, Receipt(1))
    else:
        kept.lost(sent)
    assert set(kept.segments_in_use) == set()


@pytest.mark.parametrize("problem", [GONE, DAMAGED])
def test_a_segment_that_cannot_be_read_is_damage_only_while_the_ledger_names_it(problem: Problem) -> None:
    kept = keeper()
    kept._state._uses["file"] = 1
    kept.ask(copy(1))
    sent = send(kept, copy(1))
    assert kept.check(sent, Receipt(1, problem=problem)) == (Receipt(1, problem=problem), []) and not sent.refused
    # Meanwhile all of it was written whole.
    del kept._state._uses["file"]
    receipt, _ = kept.check(sent, Receipt(1, problem=problem))
    assert receipt.problem is None and sent.refused
    kept.done(sent, receipt)
    assert kept.copy_host(LANE) is None and kept.ask(copy(1)), "it can be asked for again"


@pytest.mark.parametrize("ttl_s", [None, 60.0])
@pytest.mark.parametrize("first", ["copy", "whole"])
def test_a_copy_from_before_keys_were_forgotten_is_no_copy(ttl_s: float | None, first: str) -> None:
    """Both receipts come in one poll."""
    kept = keeper(ttl_s)
    kept.ask(load(1, 2))
    kept.done(send(kept, load(1, 2)), Receipt(1))
    task = StateTask(Task.COPY, "count", (1,), HOSTS[0])
    sent = {}
    for name, one in (("copy", task), ("whole", whole(1))):
        kept.ask(one)
        sent[name] = send(kept, one), written(one) if one.kind is Task.WHOLE else Receipt(1)
    checked = {name: kept.check(*pair)[0] for name, pair in sent.items()}
    kept._state.apply(Entry(0, 0.0, wholes=checked["whole"].wholes))
    for name in (first, "whole" if first == "copy" else "copy"):
        kept.done(sent[name][0], checked[name])
    assert kept.copy_host(LANE) == (0 if ttl_s is None else None)


def test_another_problem_of_a_task_stops_the_run_whatever_it_read() -> None:
    kept = keeper()
    kept.ask(copy(1))
    sent = send(kept, copy(1))
    full = Receipt(1, problem=Problem("BaseUnusable", "no room"))
    assert kept.check(sent, full) == (full, []) and not sent.refused


def test_a_transfer_ends_when_one_of_its_tasks_was_overtaken_and_its_lane_goes_on() -> None:
    kept = loaded()
    transfers = Transfers(kept, lambda lane: True)
    transfers.begin((1,), LANE, LANE, HOSTS[1], HOSTS[0])
    assert transfers.advance(0.0) == []
    (copying,) = kept.tasks()
    kept.done(send(kept, copying), Receipt(1))
    transfers.done(SentTask(copying, 1))
    transfers.advance(0.0)
    assert LANE in kept.stopped
    measuring = next(task for task in kept.tasks() if task.kind is Task.MEASURE)
    sent = send(kept, measuring)
    kept.moved("count", (1,), HOSTS[0])
    kept.done(sent, kept.check(sent, Receipt(1))[0])
    transfers.done(sent)
    assert transfers.advance(0.0) == [] and not transfers.gives(LANE)
    assert LANE not in kept.stopped


def test_a_process_that_gets_the_number_of_a_host_on_its_way_out_goes_too() -> None:
    kept = loaded()
    roster, hosts = kept._roster, LateHosts(VirtualClock(), 0)
    retirement = Retirement(roster, kept, Transfers(kept, lambda lane: True), hosts)
    retirement.begin(1)
    host_dies(kept)
    assert not roster.hosts[1].leaving
    retirement.step(0.1)
    assert roster.hosts[1].leaving and list(roster.staying()) == [0]
