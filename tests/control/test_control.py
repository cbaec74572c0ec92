"""The control loop without Spark: guards, decisions, the journal, and policies that misbehave."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from calm_observation import calm
from hypothesis import given
from hypothesis import strategies as st

from elastream.codec import convert, to_plain
from elastream.control import (
    ControlLoop,
    Decision,
    Guards,
    Journal,
    JournalEntry,
    Observation,
    Plant,
    Policy,
    Proposal,
    Want,
    read_journal,
)
from elastream.control import journal as journal_module
from elastream.control.analyze import analyze
from elastream.control.guard import Draft, History, Subject
from elastream.control.journal_version_1 import from_version_1
from elastream.control.look import Look, shortened
from elastream.control.plan import plan
from elastream.control.replica_guards import Slots
from elastream.control.way import too_short, way_s
from elastream.errors import Damaged, SettingError
from elastream.lanes import Store
from elastream.testing import ManualClock, ScriptedPlant, observation, operator, source
from elastream_lab.rivals.restarting import RestartingPlant


class Asks(Policy):
    """A policy that asks for what it is told."""

    name = "asks"
    start = None

    def __init__(self, *wants: Want) -> None:
        self.wants = wants

    def propose(self, seen: Observation) -> Proposal:
        return Proposal(self.wants)


def decide(
    seen: Observation, guards: Guards, *wants: Want, rescaled_s: dict[str, float] | None = None
) -> list[Decision]:
    return list(plan(seen, Proposal(wants), guards, History(rescaled_s or {})).decisions)


def test_a_want_within_all_limits_is_granted_with_its_reason() -> None:
    assert decide(calm(), Guards(), Want("a", 5, "busy")) == [Decision("a", 2, 5, 5, "busy")]


@pytest.mark.parametrize(("asked", "after"), [(99, 8), (-3, 1), (0, 1)])
def test_an_operators_own_limits_hold(asked: int, after: int) -> None:
    [decision] = decide(calm(), Guards(), Want("a", asked, "why"))
    assert (decision.after, decision.vetoes) == (after, ("limits: 1..8 replicas",))


def test_the_largest_step_is_kept_in_both_directions() -> None:
    guards = Guards(largest_step=2)
    assert [d.after for d in decide(calm(4), guards, Want("a", 8, ""), Want("b", 1, ""))] == [6, 2]


def test_an_operator_that_was_rescaled_a_moment_ago_stays() -> None:
    seen = calm()
    [decision] = decide(seen, Guards(cooldown_s=10), Want("a", 5, ""), rescaled_s={"a": seen.ended_s - 4})
    assert decision.after == 2
    assert decision.vetoes == ("cooldown: rescaled 4.0 s ago, stays for 10 s",)
    [later] = decide(seen, Guards(cooldown_s=10), Want("a", 5, ""), rescaled_s={"a": seen.ended_s - 10})
    assert later.after == 5


def test_an_operator_shrinks_only_when_its_need_is_clearly_smaller() -> None:
    close, clear = Want("a", 2, "", need=1.95), Want("a", 2, "", need=1.7)
    assert [d.after for d in decide(calm(4), Guards(slack=0.1), close)] == [3]
    assert [d.after for d in decide(calm(4), Guards(slack=0.1), clear)] == [2]
    assert [d.after for d in decide(calm(4), Guards(slack=0), close)] == [2]


def test_a_dry_run_only_advises() -> None:
    [decision] = decide(calm(), Guards(dry_run=True), Want("a", 5, "busy"))
    assert not decision.rescales
    assert decision.words == "busy; dry run: would have become 5"


def test_all_slots_together_are_shared_out_fairly() -> None:
    decisions = decide(calm(replicas=2), Guards(slots=7), Want("a", 8, ""), Want("b", 3, ""))
    assert [(d.after, d.vetoes) for d in decisions] == [(4, ("slots: 7 in all",)), (3, ())]


@given(
    st.integers(1, 60),
    st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(1, 9), st.integers(1, 30)), min_size=1),
)
def test_slots_are_never_exceeded_by_growth_and_never_left_unused(slots: int, ops: dict[str, tuple[int, int]]) -> None:
    before: dict[Subject, int] = {name: b for name, (b, _) in ops.items()}
    asked: dict[Subject, int] = {name: a for name, (_, a) in ops.items()}
    seen = observation(*(operator(name, {}, replicas=size, most=60) for name, (size, _) in ops.items()))
    draft = Draft(seen, Proposal(), History(), before, asked)
    got = asked | {verdict.of: verdict.size for verdict in Slots(slots).judge(draft)}
    running = sum(min(asked[name], before[name]) for name in ops)
    assert sum(got.values()) == max(running, min(slots, sum(asked.values())))
    assert all(min(before[n], asked[n]) <= got[n] <= max(asked[n], before[n]) for n in ops)
    assert all(got[n] == asked[n] for n in ops if asked[n] <= before[n])


@pytest.mark.parametrize(
    "wrong", [{"slots": 0}, {"cooldown_s": -1.0}, {"largest_step": 0}, {"slack": 1.0}, {"slack": -0.1}]
)
def test_wrong_guards_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="guards:"):
        Guards(**wrong)  # type: ignore[arg-type]


def looped(
    policy: object, plant: ScriptedPlant, clock: ManualClock, journal: Journal | None = None, **more: float
) -> ControlLoop:
    loop = ControlLoop(plant, policy, td_s=5.0, guards=Guards(), journal=journal, clock=clock, **more)  # type: ignore[arg-type]
    assert loop.step() is None  # the first interval begins
    return loop


def test_the_loop_decides_once_in_an_interval() -> None:
    clock = ManualClock(100.0)
    plant = ScriptedPlant([calm()], clock)
    loop = looped(Asks(Want("a", 3, "busy")), plant, clock, patience_s=10)
    entries = []
    for _ in range(21):
        clock.advance(1.0)
        entries.append(loop.step())
    assert [number for number, entry in enumerate(entries) if entry] == [4, 9, 14, 19]
    assert [d.after for decisions in plant.applied for d in decisions] == [3]
    decided = [entry.decisions[0] for entry in entries if entry]
    assert decided[0].rescales and not any(d.rescales for d in decided[1:])


class Broken(Policy):
    name = "broken"
    start = None

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def propose(self, seen: Observation) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ValueError("no idea"), "raised ValueError: no idea"),
        (None, "expected a Proposal, got NoneType"),
        ({"a": 3}, "expected a Proposal, got dict"),
        (Proposal((Want("zz", 3, ""),)), "no operator 'zz' that can be rescaled; there are a, b"),
        (Proposal((Want("in", 3, ""),)), "no operator 'in' that can be rescaled"),
        (Proposal((Want("a", 2.5, ""),)), "wants[0].replicas: expected int, got 2.5"),  # type: ignore[arg-type]
        (Proposal((Want("a", 2, ""), Want("a", 3, ""))), "operator 'a' is named twice"),
        (Proposal(("a",)), "wants[0]: expected object, got 'a'"),  # type: ignore[arg-type]
        (Proposal(None), "wants: expected array, got None"),  # type: ignore[arg-type]
        (Proposal((Want("a", 2, "", need="1.5"),)), "wants[0].need: expected float | null, got '1.5'"),  # type: ignore[arg-type]
        (Proposal((Want("a", 2, "", need=float("nan")),)), "operator 'a': expected a finite need, got nan"),
        (Proposal((Want("a", 2, 7),)), "wants[0].reason: expected str, got 7"),  # type: ignore[arg-type]
        (Proposal((Want(["a"], 2, ""),)), "wants[0].operator: expected str, got ['a']"),  # type: ignore[arg-type]
        (SystemExit(3), "raised SystemExit: 3"),
    ],
)
def test_a_policy_that_fails_is_reported_and_the_sizes_stay(answer: object, said: str) -> None:
    clock = ManualClock()
    plant = ScriptedPlant([calm()], clock)
    loop = looped(Broken(answer), plant, clock, patience_s=10)
    clock.advance(5)
    entry = loop.step()
    assert entry is not None and entry.error is not None
    assert said in entry.error
    assert entry.decisions == () and plant.applied == []


def test_ctrl_c_inside_a_policy_ends_a_simulation_and_is_no_answer() -> None:
    class Interrupted(Policy):
        name, start = "interrupted", None

        def propose(self, observation: Observation) -> Proposal:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        analyze(Interrupted(), calm())


def test_a_policy_that_thinks_too_long_holds_nothing_up_and_is_taken_up_again_later() -> None:
    gate = threading.Event()
    answered = threading.Event()

    class Slow(Asks):
        name = "slow"

        def propose(self, seen: Observation) -> Proposal:
            gate.wait(30)
            try:
                return super().propose(seen)
            finally:
                answered.set()

    clock = ManualClock()
    plant = ScriptedPlant([calm()], clock)
    loop = looped(Slow(Want("a", 4, "late")), plant, clock, patience_s=0.0)
    clock.advance(5)
    assert loop.step() is None
    clock.advance(4)
    assert loop.step() is None
    clock.advance(1.5)
    overdue = loop.step()
    assert overdue is not None and overdue.error is not None
    assert "thinking" in overdue.error or "did not answer within 5 s" in overdue.error
    gate.set()
    assert answered.wait(10)
    applied = []
    for _ in range(200):
        clock.advance(1.0)
        entry = loop.step()
        applied += [d for d in (entry.decisions if entry else ()) if d.rescales]
        if applied:
            break
        threading.Event().wait(0.01)
    assert [(d.before, d.after) for d in applied] == [(2, 4)]


def entries_of(count: int) -> list[JournalEntry]:
    seen = calm()
    decision = Decision("a", 2, 9, 8, "busy", ("limits: 1..8 replicas",))
    return [
        JournalEntry(n, "asks", seen, Proposal((Want("a", 9, "busy", 8.5),)), (decision,), None, 1.5)
        for n in range(count)
    ]


def test_a_journal_is_read_back_as_it_was_written_over_many_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "PAGE_BYTES", 5000)
    store = Store(str(tmp_path))
    written = entries_of(40)
    for entry in written[:25]:
        journal = Journal(store)  # as after a crash: it goes on where it was
        assert journal.last == entry.number - 1
        journal.append(entry)
    for entry in written[25:]:
        journal.append(entry)
    assert list(read_journal(store)) == written
    assert len(store.sizes("journal")) > 5


def test_of_looks_at_which_nothing_changed_a_journal_keeps_one_for_every_interval(tmp_path: Path) -> None:
    seen = calm()
    journal = Journal(Store(str(tmp_path)), quiet_s=5.0)
    for number in range(81):
        size = 3 if number == 50 else 2
        observation = replace(seen, ended_s=100.0 + number / 8, finished=number, latencies={number: 2})
        wanted = Proposal((Want("a", size, "busy"),), alerts=("look",) if number == 60 else ())
        decided = (Decision("a", 2, size, size, "busy"),)
        journal.append(JournalEntry(number, "looks", observation, wanted, decided, td_s=0.125, own_pace=True))
    kept = list(read_journal(Store(str(tmp_path))))
    assert [entry.number for entry in kept] == [0, 40, 50, 60]
    assert journal.last == 60
    # The others are in the next one in short, so that nothing that came or left is missing.
    assert [len(entry.looks) for entry in kept] == [0, 39, 9, 9]
    assert [look.finished for entry in kept for look in entry.all_looks] == list(range(61))
    assert kept[1].looks[-1] == Look(104.875, 1.0, (10,), (0,), 39, 0, 0.0, {39: 2})
    assert {(entry.td_s, entry.own_pace) for entry in kept} == {(0.125, True)}


def test_looks_in_short_are_added_up_when_they_are_too_many() -> None:
    looks = [Look(float(n), 1.0, (n, 1), (7, n), 1 if n < 3 else 3, 1, float(n), {n: 1, 9: 1}) for n in range(1, 6)]
    assert shortened(looks, 5) == looks
    assert shortened(looks, 4) == [
        Look(2.0, 2.0, (3, 2), (7, 2), 2, 2, 1.5, {1: 1, 9: 2, 2: 1}),
        Look(4.0, 2.0, (7, 2), (7, 4), 6, 2, 3.5, {3: 1, 9: 2, 4: 1}),
        looks[4],
    ]
    assert sum(look.read[0] for look in shortened(looks, 1)) == 15


def test_a_journal_stays_within_its_bytes_and_forgets_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "PAGE_BYTES", 4000)
    monkeypatch.setattr(journal_module, "MOST_BYTES", 20_000)
    store = Store(str(tmp_path))
    journal = Journal(store)
    for entry in entries_of(60):
        journal.append(entry)
    assert sum(store.sizes("journal").values()) < 30_000
    kept = [entry.number for entry in read_journal(store)]
    assert kept == list(range(kept[0], 60)) and kept[0] > 0


def test_a_journal_goes_on_after_a_damaged_page(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    first, second = entries_of(2)
    Journal(store).append(first)
    Journal(store).append(second)
    (tmp_path / "journal" / "00000001.json").write_bytes(b"torn")
    again = Journal(store)
    assert again.last == first.number
    again.append(second)
    assert sorted(store.sizes("journal")) == ["00000000.json", "00000001.json", "00000002.json"]


def test_a_damaged_page_is_named(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    Journal(store).append(entries_of(1)[0])
    page = tmp_path / "journal" / "00000000.json"
    page.write_bytes(page.read_bytes().replace(b"busy", b"bXsy"))
    with pytest.raises(Damaged, match=r"00000000\.json: checksum"):
        list(read_journal(store))


def test_a_listener_that_raises_does_not_stop_the_loop() -> None:
    clock = ManualClock()
    plant = ScriptedPlant([calm()], clock)
    loop = looped(Asks(Want("a", 3, "busy")), plant, clock, patience_s=10)

    def broken(entry: JournalEntry) -> None:
        raise KeyError("listener")

    loop.on_decision.append(broken)
    clock.advance(5)
    assert loop.step() is not None
    assert len(plant.applied) == 1


def test_a_journal_that_cannot_be_written_does_not_stop_the_loop(tmp_path: Path) -> None:
    class Full(Journal):
        def append(self, entry: JournalEntry) -> None:
            raise OSError("no space left")

    clock = ManualClock()
    plant = ScriptedPlant([calm()], clock)
    loop = looped(Asks(Want("a", 3, "busy")), plant, clock, Full(Store(str(tmp_path))), patience_s=10)
    clock.advance(5)
    assert loop.step() is not None
    assert len(plant.applied) == 1


def test_an_entry_says_that_the_plant_paused_also_one_of_an_older_version() -> None:
    class Pauses(Asks):
        def wrap(self, plant: Plant) -> Plant:
            return RestartingPlant(plant, 2.0, loses=False)

    clock = ManualClock()
    loop = looped(Pauses(Want("a", 3, "busy")), ScriptedPlant([calm()], clock), clock, patience_s=10)
    clock.advance(5)
    entry = loop.step()
    assert entry is not None and entry.paused
    document = to_plain(entry)
    assert convert(document, JournalEntry, "entry") == entry
    del document["paused"]
    document["observation"]["operators"] = list(document["observation"]["operators"].values())
    for said, paused in ((True, True), ("loses", True), ("pauses", True), ("no", False), (False, False)):
        document["proposal"]["restart"] = said
        assert convert(from_version_1(document), JournalEntry, "entry").paused is paused


def test_the_way_through_the_graph_is_the_longest_of_its_service_times() -> None:
    seen = observation(
        source("in", 100),
        operator("a", {"in": 100}, service_ms=100),
        operator("b", {"a": 50}, service_ms=900),
        operator("c", {"a": 50}, service_ms=300),
        operator("d", {"b": 50, "c": 50}, service_ms=50),
    )
    assert way_s(seen) == pytest.approx(1.05)
    assert too_short(1.06, seen) is None
    assert "td_s 1 is shorter than a tuple's way through the graph, 1.05 s" in (too_short(1.0, seen) or "")


def test_a_policys_own_pace_is_no_reason_to_warn_and_the_journal_says_whose_it_is() -> None:
    class Quick(Asks):
        every_s = 0.25

    slow = observation(source("in", 1), operator("a", {"in": 1}, service_ms=310))
    for td_s, own in ((None, True), (0.25, False)):
        clock = ManualClock()
        plant = ScriptedPlant([slow], clock)
        loop = ControlLoop(plant, Quick(), td_s=td_s, guards=Guards(), clock=clock, patience_s=10)
        loop.step()
        clock.advance(0.25)
        entry = loop.step()
        assert entry is not None and (entry.td_s, entry.own_pace) == (0.25, own)
        assert (entry.warning is None) == own


def test_an_interval_that_is_too_short_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    clock, slow = ManualClock(), observation(source("in", 1), operator("a", {"in": 1}, service_ms=7000))
    loop = looped(Asks(), ScriptedPlant([slow], clock), clock, None, patience_s=10)
    warnings = []
    for _ in range(3):
        clock.advance(5)
        entry = loop.step()
        assert entry is not None
        warnings.append(entry.warning)
    assert warnings[1:] == [None, None] and "set td_s to 7 or more" in (warnings[0] or "")
    assert [record.message for record in caplog.records].count(warnings[0] or "") == 1


def test_a_listener_that_raises_silences_no_other_and_its_error_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    plant = ScriptedPlant([calm(), calm(), calm()], clock)
    loop = looped(Asks(Want("a", 3, "busy")), plant, clock, patience_s=10)
    heard: list[int] = []

    def broken(entry: JournalEntry) -> None:
        raise KeyError("listener")

    loop.on_decision.append(broken)
    loop.on_decision.append(lambda entry: heard.append(entry.number))
    for _ in range(3):
        clock.advance(5)
        loop.step()
    assert heard == [0, 1, 2]
    errors = [record for record in caplog.records if record.exc_info]
    assert len(errors) == 1 and "broken to decisions raised" in errors[0].getMessage()
