"""The control loop on the engine: what a policy decides happens to a stream that flows."""

import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from flows import each_once, files_by_delivery, finish, ids_in, ids_of, numbers, same

from elastream import Guards, QueueSettings, Settings, Topology, groupings, sources
from elastream.cli.main import main
from elastream.control import JournalEntry, Observation, Plant, Policy, Proposal, Want, read_journal
from elastream.engine.driver.ports import Tick
from elastream.engine.worker.context import make_context
from elastream.engine.worker.program import Program
from elastream.engine.worker.service_times import time_operators
from elastream.lanes import Store
from elastream.testing import LocalEngine
from elastream.workload import constant
from elastream_lab.rivals.restarting import RestartingPlant


def takes_ten_ms(row: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.01)
    return row


def slow(per_second: float, seconds: float, replicas: tuple[int, int], start: int = 1) -> Topology:
    flow = Topology("slow")
    flow.source("in", sources.replay(constant(per_second, seconds)))
    flow.map("slow", takes_ten_ms, after="in", replicas=replicas, start=start)
    flow.output("out", after="slow")
    return flow


def three_sizes(per_second: float) -> Topology:
    """The same stream in front of three, four and five replicas, so that all live through the same ticks."""
    flow = Topology("slow")
    flow.source("in", sources.replay(constant(per_second, 30)))
    for size in (3, 4, 5):
        flow.map(f"by {size}", takes_ten_ms, after="in", replicas=(size, size), start=size)
        flow.output(f"of {size}", after=f"by {size}")
    return flow


def watched(flow: Topology, base: Path, intervals: int) -> list[JournalEntry]:
    """The first so many intervals of a run."""
    entries: list[JournalEntry] = []
    with LocalEngine(processes=True).start(flow, str(base), policy="psps", td_s=1.0, benchmark_s=0.5) as handle:
        handle.on_decision(entries.append)
        while len(entries) < intervals and handle.active:
            handle.await_end(0.2)
    return entries[:intervals]


def test_the_number_psps_asks_for_keeps_up_and_one_fewer_does_not(tmp_path: Path) -> None:
    # A tuple takes ten milliseconds at least, on any machine: three replicas cannot serve 340 of them in a second.
    entries = watched(three_sizes(340), tmp_path, 8)[2:]
    asked = Counter(d.asked for e in entries for d in e.decisions if d.operator == "by 5").most_common(1)[0][0]
    assert asked in (4, 5)
    # It also counts what waits when it is asked, to be served within the interval.
    assert all(d.asked >= 4 for e in entries for d in e.decisions if d.operator == "by 3")
    queued = {size: [e.observation.operators[f"by {size}"].queued for e in entries] for size in (3, 5)}
    assert queued[3][-1] > queued[3][0] + 40 * (len(entries) - 1) * 0.5
    assert max(queued[5]) < 340 / 2


class Fails(Policy):
    name = "fails"
    start = None

    def __init__(self) -> None:
        self.asked = 0
        self.never = threading.Event()

    def propose(self, seen: Observation) -> Proposal:
        self.asked += 1
        if self.asked == 1:
            raise ZeroDivisionError("no idea")
        if self.asked == 2:
            return Proposal((Want("nobody", 3, "?"),))
        self.never.wait()
        return Proposal()


def test_a_policy_that_fails_or_never_answers_does_not_stop_the_stream(tmp_path: Path) -> None:
    flow = Topology("t")
    flow.source("in", sources.replay(constant(500, 6)))
    flow.batch("work", same, after="in", replicas=(1, 4), start=2).output("out")
    policy = Fails()
    with LocalEngine().start(flow, str(tmp_path), policy=policy, td_s=0.7, benchmark_s=0) as handle:
        finish(handle)
        assert ids_of(handle) == each_once(3000)
        assert handle.observe().operators["work"].replicas == 2
    policy.never.set()
    errors = [entry.error for entry in read_journal(Store(str(tmp_path)))]
    assert "raised ZeroDivisionError: no idea" in str(errors[0])
    assert "no operator 'nobody'" in str(errors[1])
    assert any("did not answer within 0.7 s" in str(e) or "has been thinking" in str(e) for e in errors[2:])


class Waves(Policy):
    """Up and down, as fast as it can."""

    name = "waves"
    start = None

    def __init__(self) -> None:
        self.turn = 0

    def propose(self, seen: Observation) -> Proposal:
        self.turn += 1
        size = (6, 1, 3)[self.turn % 3]
        return Proposal(tuple(Want(o.operator, size, f"turn {self.turn}") for o in seen.scalable()))


def test_decisions_change_the_replicas_lose_nothing_and_are_in_the_journal(tmp_path: Path) -> None:
    flow = Topology("t")
    flow.source("in", sources.replay(constant(900, 8)))
    for name, before in (("a", "in"), ("b", "a")):
        flow.batch(name, same, after=before, replicas=(1, 5), grouping=groupings.load_balancing)
    flow.output("out", after="b")
    sizes: list[int] = []

    def at_each_tick(tick: Tick) -> None:
        sizes.append(tick.replicas["b"])

    with LocalEngine().start(flow, str(tmp_path / "base"), policy=Waves(), td_s=0.6, benchmark_s=0) as handle:
        handle.subscribe(at_each_tick)
        finish(handle)
        assert ids_of(handle) == each_once(7200)
        assert handle.audit().problems == ()
    assert {1, 3, 5} <= set(sizes)
    entries = list(read_journal(Store(str(tmp_path / "base"))))
    assert [entry.number for entry in entries] == list(range(len(entries)))
    [first] = [d for d in entries[1].decisions if d.operator == "b"]
    assert (first.asked, first.reason) == (3, "turn 2")
    limited = [d for e in entries for d in e.decisions if d.asked == 6]
    assert limited and all(d.after == 5 and d.vetoes == ("limits: 1..5 replicas",) for d in limited)
    # Over all intervals every tuple was received by b from a, lane by lane and altogether.
    lanes = [lane for e in entries for lane in e.observation.operators["b"].lanes]
    assert sum(lane.received_from.get("a", 0) for lane in lanes) == sum(
        e.observation.operators["b"].received_from["a"] for e in entries
    )


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    flow = numbers(2000, seconds=3).batch("work", same, after="in", replicas=(1, 4)).output("out")
    guards = Guards(dry_run=True)
    with LocalEngine().start(flow, str(tmp_path), policy=Waves(), td_s=0.5, guards=guards) as handle:
        finish(handle)
        assert handle.observe().operators["work"].replicas == 1
    said = {d.words for e in read_journal(Store(str(tmp_path))) for d in e.decisions if d.asked == 3}
    assert "turn 2; dry run: would have become 3" in said


def test_a_policy_sizes_two_sources_with_bounded_queues_and_a_limit_of_age(tmp_path: Path) -> None:
    flow = Topology("t")
    flow.source("left", sources.replay(constant(150, 8)))
    flow.source("right", sources.replay(constant(100, 8), "id long", lambda n: {"id": n + 10_000}))
    flow.map("slow", takes_ten_ms, after=["left", "right"], replicas=(1, 8)).output("out")
    settings = Settings(queues=QueueSettings(q_size=60, on_full="drop", t_out_s=1.5))
    with LocalEngine().start(
        flow, str(tmp_path), policy="psps", td_s=1.0, settings=settings, benchmark_s=0.5
    ) as handle:
        finish(handle)
        audit, found = handle.audit(), ids_of(handle)
    assert audit.problems == ()
    assert audit.entered == 2000 == audit.finished + audit.dropped
    assert found.total() == len(found) == audit.finished
    entries = list(read_journal(Store(str(tmp_path))))
    # Both sources are input, and the operator got what it got from each of them.
    assert sum(entry.observation.entered for entry in entries) <= 2000
    of_each = {
        name: sum(entry.observation.operators["slow"].received_from[name] for entry in entries)
        for name in ("left", "right")
    }
    assert of_each["left"] > of_each["right"] > 0
    # Two and a half seconds of work come in a second: it grew, and what was lost is what the bounds say.
    assert max(decision.after for entry in entries for decision in entry.decisions) >= 4


def test_a_journal_is_replayed_through_another_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched(slow(150, 30, (1, 8)), tmp_path / "base", 3)
    assert main(["replay", str(tmp_path / "base"), "--policy", "static:replicas=7", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["recorded_policy"] == "psps"
    assert document["intervals"] == len(document["decisions"]) >= 3
    assert {d["would_be"] for d in document["decisions"]} == {7}
    assert document["differ"] == sum(d["recorded"] != 7 for d in document["decisions"])
    assert main(["replay", str(tmp_path / "base"), "--policy", "psps", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differ"] == 0
    assert main(["replay", str(tmp_path / "base"), "--policy", "ds2"]) == 0
    assert "intervals" in capsys.readouterr().out
    assert main(["replay", str(tmp_path), "--policy", "psps"]) == 2
    assert "no journal there" in capsys.readouterr().err


def test_operators_are_timed_before_the_stream_flows_and_sinks_are_left_alone(tmp_path: Path) -> None:
    flow = numbers(500).map("slow", takes_ten_ms, after="in").topology
    flow.filter("half", lambda row: row["id"] % 2 == 0, after="slow")
    flow.map("also slow", takes_ten_ms, after="half", chain=True)

    def never(batch: object, delivery: object) -> None:
        raise AssertionError("timing must not write")

    flow.sink("store", never, after="also slow")
    program = Program(flow.build(), Settings(), str(tmp_path), "test")
    timed = time_operators(make_context(program, Store(str(tmp_path)), "h1", cached=False), {"in": 500}, 2.0)
    assert set(timed) == {"slow", "half"}
    assert 0.01 <= timed["slow"] < 0.1
    # Half of what reaches the filter goes on to the operator that is chained to it.
    assert 0.4 < timed["half"] / timed["slow"] < 0.7


def test_a_policy_knows_service_times_from_its_first_interval_on(tmp_path: Path) -> None:
    [first] = watched(slow(100, 30, (1, 8)), tmp_path, 1)
    assert 0.01 <= first.observation.operators["slow"].service_seconds < 0.1


class Restarts(Policy):
    """One more replica each time, by a restart."""

    name = "restarts"
    start = None

    def __init__(self, *, loses: bool) -> None:
        self._loses = loses

    def wrap(self, plant: Plant) -> Plant:
        return RestartingPlant(plant, 0.7, loses=self._loses)

    def propose(self, seen: Observation) -> Proposal:
        wants = tuple(Want(o.operator, min(o.replicas + 1, 4), "one more") for o in seen.scalable())
        return Proposal(wants)


@pytest.mark.parametrize("loses", [True, False])
def test_a_restart_as_other_systems_have_it_loses_what_is_queued_or_only_pauses(tmp_path: Path, loses: bool) -> None:
    folder = tmp_path / "ids"
    folder.mkdir()
    flow = Topology("t")
    flow.source("in", sources.replay(constant(300, 6)))
    flow.map("slow", takes_ten_ms, after="in", replicas=(1, 4))
    flow.sink("store", files_by_delivery(folder), after="slow")
    entries: list[JournalEntry] = []
    base = str(tmp_path / "base")
    with LocalEngine().start(flow, base, policy=Restarts(loses=loses), td_s=1.0, benchmark_s=0) as handle:
        handle.on_decision(entries.append)
        finish(handle)
        audit = handle.audit()
    assert audit.problems == ()
    assert (audit.dropped > 0) == loses
    assert audit.entered == audit.finished + audit.dropped == 1800
    stored = ids_in(folder)
    assert stored.total() == len(stored) == audit.finished
    # The next interval begins when the pause is over, and has nothing of it.
    first, second = (entry.observation for entry in entries[:2])
    assert second.ended_s - first.ended_s >= 1.7
    assert 1.0 <= second.seconds <= second.ended_s - first.ended_s - 0.6


def test_sizing_by_hand_beside_a_policy_says_who_decides(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with LocalEngine().start(numbers(10).output("out", after="in"), str(tmp_path / "none")) as handle:
        handle.scale("out", 1)
    assert not caplog.records
    with LocalEngine().start(slow(20, 5.0, (1, 4)), str(tmp_path / "psps"), policy="psps", benchmark_s=0.0) as handle:
        handle.scale("slow", 2)
    assert "the policy psps may change the replicas of slow again" in caplog.text
