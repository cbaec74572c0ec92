"""The recorder that engine and simulator feed: samples, ticks, changes of replicas and decisions become one record."""

import pytest

from elastream.control import Decision, Guards, JournalEntry, LevelDecision, Move, Proposal, StateMoved, Want
from elastream.control.level_guards import Prices
from elastream.fleet import Level, LevelState
from elastream.report import Rescale, Sample
from elastream.report.latency import Latencies
from elastream.report.recorder import RunRecorder
from elastream.testing import observation, operator, source


def recorder() -> RunRecorder:
    return RunRecorder("flow", ("in",), {"a": 4})


def change(t_s: float) -> Rescale:
    return Rescale(t_s, "a", 1, 2, "busy")


def test_samples_and_latencies_add_up() -> None:
    made = recorder()
    for t_s in (1.0, 2.0):
        samples = {"a": Sample(t_s, 1.0, 10, 9, 1, 0, 1, 0.5, late=1)}
        made.add_samples(t_s, samples, Latencies({5: 9}, 0.9, 0.2))
    record = made.record
    assert [sample.t_s for sample in record.series.operators["a"]] == [1.0, 2.0]
    assert (record.latencies.count, record.late["a"]) == (18, 2)
    assert record.latencies.sum_s == pytest.approx(1.8)
    assert [point.count for point in record.latency_line.points()] == [9, 9]


def test_a_pause_is_the_longest_of_the_ticks_that_commit_and_apply_a_change() -> None:
    made = recorder()
    made.add_ticks(0, [9.0])
    made.add_rescales(1, [change(1.0)])
    for number, length_ms in enumerate([2.0, 3.0, 7.0, 8.0], 1):
        made.add_ticks(number, [length_ms])
    assert list(made.record.rescale_ticks_ms) == [7.0]
    assert made.record.tick_ms.total == 5 and made.record.rescales.total == 1


def test_ticks_may_come_in_bulk_with_gaps_and_the_end_closes_what_is_open() -> None:
    made = recorder()
    made.add_rescales(2, [change(0.0)])
    made.add_rescales(3, [change(0.1)])
    made.add_rescales(900, [change(9.0)])
    made.add_ticks(0, [50.0, 40.0, 3.0, 4.0])
    assert list(made.record.rescale_ticks_ms) == []
    made.add_ticks(100, [60.0] * 12)
    assert list(made.record.rescale_ticks_ms) == [4.0, 4.0]
    made.add_ticks(900, [5.0])
    made.end()
    assert list(made.record.rescale_ticks_ms) == [4.0, 4.0, 5.0]
    made.add_rescales(2000, [change(20.0)])
    made.end()
    assert made.record.rescale_ticks_ms.total == 3, "of a change without any tick nothing is known"


def test_a_decision_leaves_remarks_loads_healths_and_containers() -> None:
    seen = observation(source("in", 100), operator("a", {"in": 100}, queued=30))
    fleet = (LevelState(Level.HOST, 2, 3, 3, 8, 1.0, problem="late"),)
    entry = JournalEntry(
        0,
        "mine",
        type(seen)(**{**vars(seen), "fleet": fleet}),
        Proposal((Want("a", 3, "busy"),), alerts=("look",)),
        (Decision("a", 1, 3, 2, "busy", ("largest step: 1",)), Decision("b", 1, 2, 1, "busy", ("cooldown",))),
        guards=Guards(prices=Prices(host=0.5)),
        warning="short",
        levels=(LevelDecision(Level.HOST, 2, 3, 3, "room"),),
        moves=tuple(Move("a", lane, 0, 1, "room") for lane in range(6)),
    )
    made = recorder()
    made.add_decision(5.0, entry)
    record = made.record
    assert [(kind, words) for _, kind, words in record.remarks] == [
        ("warning", "short"),
        ("rescale", "a: 1 -> 2  busy; largest step: 1"),
        ("veto", "b: 1 -> 1  busy; cooldown; 2 wanted"),
        ("alert", "look"),
        ("fleet", "hosts: 2 -> 3  room"),
        ("fleet", "hosts: late"),
        ("move", "a 0: 0 -> 1, a 1: 0 -> 1, a 2: 0 -> 1, a 3: 0 -> 1 and 2 more  room"),
    ]
    assert record.warnings == ["short"]
    assert [(sample.t_s, sample.cost_per_hour) for sample in record.fleet] == [(5.0, 1.0)]
    assert [sample.t_s for sample in record.healths] == [5.0]
    made.add_state_moves(6.0, [StateMoved("a", 2, 5.5, keys=7)])
    assert [(move["t_s"], move["operator"], move["keys"]) for move in record.state_moves] == [(6.0, "a", 7)]
