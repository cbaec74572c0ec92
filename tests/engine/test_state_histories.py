"""Keyed state through late works, deaths, rescales and hosts that come and go, with a log that is always cut short."""

import random
from pathlib import Path
from typing import Any

import pytest
from flows import finish, ledger_of
from late_hosts import PROMPT, Late, LateHosts
from word_counts import check_emitted, counted, counting, expected, words

from elastream import Settings, StateSettings, Topology, rules
from elastream.engine.assemble import Plan, assemble
from elastream.engine.clock import VirtualClock
from elastream.engine.driver.placement.state_keeper import StateKeeper
from elastream.engine.driver.placement.state_tasks import SentTask, Task
from elastream.engine.handle import Run, RunHandle
from elastream.engine.messages import Receipt, ServeWork, SyncWork, WholeWork, Work
from elastream.fleet.levels import Level
from elastream.fleet.machines import FixedMachines
from elastream.lanes import LaneId, Store, cleanup, ledger, segment_files
from elastream.state.host_state import HostState


@pytest.fixture(autouse=True)
def everything_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are cut short all the time, and files are deleted as soon as they may be."""
    monkeypatch.setattr(cleanup, "GRACE_S", 0.0)
    monkeypatch.setattr(segment_files, "ROLL_S", 0.0)
    monkeypatch.setattr(ledger, "LEAST_BYTES", 50_000)
    monkeypatch.setattr(rules, "MOST_CHANGES", 6)
    monkeypatch.setattr(rules, "LEAST_ROWS", 40)
    monkeypatch.setattr(rules, "BETWEEN_WHOLES_S", 0.0)
    monkeypatch.setattr(rules, "PORTION_KEYS", 8)


def start(flow: Topology, base: Path, hosts: LateHosts, count: int, ring_s: float | None) -> Run:
    handle = assemble(
        flow.build(),
        Store(str(base)),
        Plan(settings=Settings(state=StateSettings(ring_s=ring_s))),
        hosts,
        hosts.start,
        RunHandle,
        machines=FixedMachines(lambda: count),
        slots=lambda: count,
        clock=hosts.clock,
    )
    return handle._run


def play(base: Path, seed: int, late: Late) -> None:
    """One history, whose counts must come to what a recount gives."""
    count, keys = 3000, 60
    hosts = LateHosts(VirtualClock(), seed, late)
    run = start(counting(words(count, keys, 8.0)), base, hosts, 4, ring_s=0.1)

    def change(chance: random.Random) -> None:
        if chance.random() < 0.04:
            handle.scale("count", chance.randint(1, 6))
        if chance.random() < 0.02:
            run.driver.fleet.set(Level.HOST, chance.randint(1, 4))

    with RunHandle(run) as handle:
        hosts.on_poll = change
        finish(handle)
        assert counted(handle) == expected(count, keys)
        check_emitted(handle, expected(count, keys))
        audit = handle.audit()
    assert audit.problems == ()
    assert ledger_of(handle).logs["count"].wholes, "no group was written whole"


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_right_while_works_are_late_and_hosts_die(seed: int, tmp_path: Path) -> None:
    play(tmp_path, seed, Late(twice=0.1))


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_right_while_hosts_pause_for_long(seed: int, tmp_path: Path) -> None:
    play(tmp_path, seed, Late(done=0.3, heard=0.5, death=0.002, pause=0.01, pause_s=2.0))


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_right_while_lanes_and_hosts_change_and_nobody_dies(seed: int, tmp_path: Path) -> None:
    play(tmp_path, seed, Late(done=0.3, heard=0.5, death=0.0, pause=0.0))


def is_write(work: Work) -> bool:
    return isinstance(work, WholeWork) and work.write


def serves(work: Work, lane: LaneId) -> bool:
    return (
        isinstance(work, ServeWork) and work.operator == lane.operator and any(r.lane == lane.lane for r in work.lanes)
    )


def ask_then_move(base: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The lane is busy when a snapshot is asked for, then stopped for a transfer, and then its groups live elsewhere.

    Gives the problems that the audit finds.
    """
    count, keys, lane = 3000, 60, LaneId("count", 1)
    # All groups of the lane move together.
    monkeypatch.setattr(rules, "PORTION_KEYS", 10_000)
    hosts = LateHosts(VirtualClock(), 0, PROMPT)
    run = start(counting(words(count, keys, 8.0)), base, hosts, 2, ring_s=None)
    tables = run.driver.tables
    keeper, log, phases = tables.keeper, run.base.state.logs, ["serve"]
    numbers: list[int] = []

    def waits_to_write() -> bool:
        waiting = (task for task in keeper.waiting() if task.kind is Task.WHOLE)
        return any(task.lane == lane for task in waiting)

    def advance(chance: random.Random) -> None:
        phase, owners = phases[-1], run.base.state.owners["count"]
        if phase == "serve" and run.base.state.entry > 50:
            # From now on the lane is busy, while the other makes the log long.
            hosts.holds = lambda host, work: serves(work, lane)
            phases.append("busy")
        elif phase == "busy" and waits_to_write():
            first.scale("count", 1)
            phases.append("copy")
        elif phase == "copy" and tables.groups.is_frozen(lane):
            giver = tables.homes.home(lane)
            hosts.holds = lambda host, work: host == giver and is_write(work)
            phases.append("move")
        elif phase == "move" and lane.lane not in owners:
            numbers.append(log["count"].next_number)
            phases.append("moved")
        elif phase == "moved" and log["count"].next_number > numbers[0] + 10:
            hosts.holds = lambda host, work: False
            numbers.append(run.base.state.entry)
            phases.append("write")
        elif phase == "write" and run.base.state.entry > numbers[1] + 3:
            run.life.stop()

    with RunHandle(run) as first:
        hosts.on_poll = advance
        first.await_end(30.0)
        problems = first.audit().problems
    assert phases == ["serve", "busy", "copy", "move", "moved", "write"]
    return problems


def test_a_snapshot_that_was_asked_for_before_its_groups_moved_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, keys = 3000, 60
    assert ask_then_move(tmp_path, monkeypatch) == ()
    # All hosts learn from the ledger what was counted.
    others = LateHosts(VirtualClock(), 0, PROMPT, first=100)
    with RunHandle(start(counting(words(count, keys, 8.0)), tmp_path, others, 2, ring_s=None)) as handle:
        finish(handle)
        assert counted(handle) == expected(count, keys)
        check_emitted(handle, expected(count, keys))
        assert handle.audit().problems == ()


def test_the_audit_reports_a_snapshot_that_replaced_newer_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same history with a driver that sends the task all the same, and takes its snapshot for one of now."""
    is_current, check = StateKeeper.is_current, StateKeeper.check

    def careless(self: StateKeeper, sent: SentTask, receipt: Receipt) -> tuple[Receipt, list[str]]:
        checked, unused = check(self, sent, receipt)
        checked.wholes = [whole._replace(since=-1) for whole in checked.wholes]
        return checked, unused

    monkeypatch.setattr(StateKeeper, "is_current", lambda s, task: task.kind is Task.WHOLE or is_current(s, task))
    monkeypatch.setattr(StateKeeper, "_is_overtaken", lambda self, sent: False)
    monkeypatch.setattr(StateKeeper, "check", careless)
    problems = ask_then_move(tmp_path, monkeypatch)
    assert problems
    assert all("the snapshot of key group" in one and "state was lost" in one for one in problems)


def test_the_audit_reports_a_host_that_went_on_without_a_key_that_it_should_have_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = HostState.learn

    def forgets(self: HostState, operator: str, since: dict[int, int], *rest: Any) -> None:
        learn(self, operator, since, *rest)
        for group in since:
            self.store.write(operator, [(group, key, None) for key, _ in self.store.group(operator, group)[:1]])

    # The audit looks at the entries that are kept, of two logs.
    monkeypatch.setattr(ledger, "LEAST_BYTES", 4 << 20)
    flow = counting(words(1000, 60, 3.0))
    hosts = LateHosts(VirtualClock(), 0, PROMPT)
    run = start(flow, tmp_path, hosts, 1, ring_s=None)
    died: list[bool] = []

    def dies(host: int, work: Work) -> bool:
        if run.base.state.entry > 50 and not died:
            monkeypatch.setattr(HostState, "learn", forgets)
            died.append(True)
            return True
        return False

    with RunHandle(run) as handle:
        hosts.ends_with = dies
        finish(handle)
        problems = handle.audit().problems
    assert problems and all(one.startswith("state of count: ") and "state was lost" in one for one in problems)


@pytest.mark.parametrize("how_many", [1, 2])
def test_what_a_host_learned_before_it_died_is_not_known_to_the_one_that_has_its_number(
    how_many: int, tmp_path: Path
) -> None:
    """Its receipt, its end and its successor come in one poll."""
    count, keys = 3000, 60
    hosts = LateHosts(VirtualClock(), 0, PROMPT)
    run = start(counting(words(count, keys, 8.0)), tmp_path, hosts, how_many, ring_s=0.1 if how_many > 1 else None)
    ends: list[str] = []

    def ends_with(host: int, work: Work) -> bool:
        if host or run.base.state.entry < 50 or len(ends) > 5:
            return False
        # A death makes lanes learn their groups; the next one is that of a host that has just learned.
        if isinstance(work, SyncWork) or not ends:
            ends.append(type(work).__name__)
            return True
        return False

    with RunHandle(run) as handle:
        hosts.ends_with = ends_with
        finish(handle)
        assert counted(handle) == expected(count, keys)
        assert handle.audit().problems == ()
    assert ends.count("SyncWork") == 5


def test_a_copy_whose_segments_are_obsolete_when_its_host_goes_on_is_still_made(tmp_path: Path) -> None:
    count, keys = 3000, 60
    hosts = LateHosts(VirtualClock(), 0, PROMPT)
    run = start(counting(words(count, keys, 8.0)), tmp_path, hosts, 2, ring_s=0.1)
    held: list[SyncWork] = []
    obsolete: list[str] = []

    def holds(host: int, work: Work) -> bool:
        if isinstance(work, SyncWork) and not held and work.changes:
            held.append(work)
        return bool(held) and work is held[0] and not obsolete

    def look(chance: random.Random) -> None:
        if held and not obsolete:
            named = {change.slice.segment for change in held[0].changes}
            gone = [segment for segment in named if not run.base.state.names(segment)]
            if gone and run.base.state.entry > entry_of.setdefault(gone[0], run.base.state.entry) + 5:
                obsolete.extend(gone)
                there.extend((tmp_path / "segments" / name).exists() for name in gone)

    entry_of: dict[str, int] = {}
    there: list[bool] = []
    with RunHandle(run) as handle:
        hosts.holds, hosts.on_poll = holds, look
        finish(handle)
        assert counted(handle) == expected(count, keys)
    assert obsolete and all(there), "a work under way reads them"
    assert not any((tmp_path / "segments" / name).exists() for name in obsolete), "and nobody afterwards"
