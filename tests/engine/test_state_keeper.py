"""Works about states: in which order hosts get them, and which must not meet."""

from collections.abc import Callable
from typing import Any

import pytest
from late_hosts import LateHosts

from elastream import Settings, Topology, sources
from elastream.engine.clock import VirtualClock
from elastream.engine.driver.commit.estimates import Estimates
from elastream.engine.driver.dispatch.headroom import Headroom
from elastream.engine.driver.dispatch.suspects import Suspects
from elastream.engine.driver.dispatch.works import WorkTable
from elastream.engine.driver.placement.groups import GroupMove, GroupPhase, GroupTable
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.driver.placement.hosts import HostId, HostRecord, HostTable
from elastream.engine.driver.placement.moves import GroupMoves
from elastream.engine.driver.placement.retirement import Retirement
from elastream.engine.driver.placement.state_keeper import StateKeeper
from elastream.engine.driver.placement.state_tasks import SentTask, StateTask, Task
from elastream.engine.messages import Problem, Receipt
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
    source = Topology("kept").source("in", sources.replay(constant(1, 1)))
    counted = source.key_by("id").process("count", count, state="n long", replicas=(1, 4), ttl_s=ttl_s)
    graph, state, hosts = counted.output("out").topology.build(), LedgerState(), HostTable()
    state.owners["count"], state.sizes["count"] = [0] * 128, 1
    state.logs["count"] = StateLog()
    state.logs["count"].add(Slice("file", 0, 0, 0, SchemaId("x"), 0, 2, packed([(1, 1), (2, 1)])))
    groups = GroupTable(graph, state)
    homes = LaneHomes(hosts, groups)
    for host in (0, 1):
        hosts.join(HostRecord(host, HOSTS[host].incarnation))
    homes.move(LANE, 1)
    return StateKeeper(graph, state, hosts, homes, groups, 1.0)


def primary(kept: StateKeeper, group: int = 1) -> HostId | None:
    return kept._groups.primary("count", group)


def moved(kept: StateKeeper, groups: tuple[int, ...], host: HostId) -> None:
    """These groups have been handed over to a host."""
    kept._groups.hand_over(GroupMove("count", groups, LANE, LANE, HOSTS[1 - host.number], host))


def copies(kept: StateKeeper) -> list[int]:
    return sorted(host.number for host in kept._groups.copies_of(LANE))


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
    assert primary(kept) == HOSTS[1]
    assert list(kept.tasks()) == []
    assert kept.ask(copy(1)), "and nobody waits for it"


GONE, DAMAGED = (
    Problem("Damaged", "segment file: it is gone"),
    Problem("Damaged", "segment file: its checksum is wrong"),
)


def loaded(host: int = 1) -> StateKeeper:
    """Groups 1 and 2 are live in this host, where their lane lives."""
    kept = keeper()
    kept._homes.move(LANE, host)
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
    moved(kept, (1, 2), HOSTS[0])
    kept._homes.move(LANE, 0)


def give_groups(kept: StateKeeper) -> None:
    """To another lane of the same host: nothing is transferred."""
    kept._state.move_groups("count", {1: 1, 2: 1})


def host_dies(kept: StateKeeper) -> None:
    """And another process has its number and the lane, all in one poll."""
    kept._homes.host_lost(1)
    kept._hosts.lose(1)
    kept.host_lost(1)
    kept._groups.host_lost(1)
    kept._hosts.join(HostRecord(1, "another incarnation"))
    kept._homes.move(LANE, 1)


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
    sent, live = send(kept, task), primary(kept)
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
    assert primary(kept) == hosts[happens]


@pytest.mark.parametrize("happens", [host_dies, give_groups, lambda kept: kept._homes.move(LANE, 0)])
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
    assert primary(kept) is None
    assert copies(kept) == [], "nor is it a copy"


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
    moved(kept, (1, 2), HOSTS[1])
    kept._homes.move(LANE, 1)
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
    assert copies(kept) == [] and kept.ask(copy(1)), "it can be asked for again"


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
    assert copies(kept) == ([0] if ttl_s is None else [])


def test_another_problem_of_a_task_stops_the_run_whatever_it_read() -> None:
    kept = keeper()
    kept.ask(copy(1))
    sent = send(kept, copy(1))
    full = Receipt(1, problem=Problem("BaseUnusable", "no room"))
    assert kept.check(sent, full) == (full, []) and not sent.refused


def test_a_transfer_ends_when_one_of_its_tasks_was_overtaken_and_its_lane_goes_on() -> None:
    kept = loaded()
    groups, moves = kept._groups, moves_of(kept)
    moves.begin_groups((1,), LANE, LANE, HOSTS[1], HOSTS[0])
    assert moves.advance(0.0) == [] and groups("count", 1).phase is GroupPhase.COPYING
    (copying,) = kept.tasks()
    kept.done(send(kept, copying), Receipt(1))
    moves.done(SentTask(copying, 1))
    moves.advance(0.0)
    assert groups("count", 1).phase is GroupPhase.COMPARING and groups.is_frozen(LANE)
    measuring = next(task for task in kept.tasks() if task.kind is Task.MEASURE)
    sent = send(kept, measuring)
    moved(kept, (1,), HOSTS[0])
    kept.done(sent, kept.check(sent, Receipt(1))[0])
    moves.done(sent)
    assert moves.advance(0.0) == [] and not groups.gives(LANE)
    assert groups("count", 1).phase is GroupPhase.SETTLED and not groups.is_frozen(LANE)


def test_a_phase_that_does_not_follow_is_refused() -> None:
    kept = loaded()
    moves_of(kept).begin_groups((1,), LANE, LANE, HOSTS[1], HOSTS[0])
    (move,) = kept._groups.moves
    with pytest.raises(AssertionError, match="copying -> comparing"):
        kept._groups.enter(move, GroupPhase.COMPARING)
    with pytest.raises(AssertionError, match="moves already"):
        kept._groups.begin(GroupMove("count", (1,), LANE, LANE, HOSTS[1], HOSTS[0]))


def test_a_host_that_is_lost_ends_the_moves_from_and_to_it_and_its_groups_must_be_restored() -> None:
    kept = loaded()
    moves_of(kept).begin_groups((1,), LANE, LANE, HOSTS[1], HOSTS[0])
    kept._groups.host_lost(0)
    assert not kept._groups.moves and primary(kept) == HOSTS[1]
    kept._groups.host_lost(1)
    assert primary(kept) is None


def test_a_process_that_gets_the_number_of_a_host_on_its_way_out_goes_too() -> None:
    kept = loaded()
    hosts = kept._hosts
    retirement = Retirement(hosts, kept._homes, kept._groups, LateHosts(VirtualClock(), 0))
    retirement.begin(1)
    host_dies(kept)
    assert not hosts[1].leaving
    retirement.step(0.1)
    assert hosts[1].leaving and [record.host for record in hosts.staying()] == [0]


def moves_of(kept: StateKeeper) -> GroupMoves:
    """Moves of lanes that have no work under way."""
    idle = Topology("idle").source("in", sources.replay(constant(1, 1))).output("out")
    headroom = Headroom(idle.topology.build(), Settings(), kept._state, Estimates())
    return GroupMoves(kept._groups, kept, WorkTable(kept._state, kept._hosts, headroom, Suspects()))
