"""Guards of containers: limits per level, money, windows of the day, a budget of disruption; and their file."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from calm_observation import calm

from elastream.cli.guard_options import load_guards
from elastream.codec import to_plain
from elastream.control import Guards, LevelDecision, LevelWant, Observation, Proposal, Want
from elastream.control.guard import History
from elastream.control.guards import parse_guards
from elastream.control.level_guards import Prices
from elastream.control.plan import Planned, plan
from elastream.control.time_guards import Disruptions, Window
from elastream.errors import SettingError
from elastream.fleet import Level, LevelState


def fleet(seats: int = 4, hosts: int = 2, executors: int = 1, most: int = 10, at: str = "12:00") -> Observation:
    from dataclasses import replace

    states = tuple(
        LevelState(level, count, count, count, most, 1.0)
        for level, count in ((Level.SEAT, seats), (Level.HOST, hosts), (Level.EXECUTOR, executors))
    )
    then = datetime.fromisoformat(f"2026-03-02T{at}").replace(tzinfo=UTC)
    return replace(calm(), fleet=states, ended_s=then.timestamp())


def decide(seen: Observation, guards: Guards, history: History | None = None, **levels: int) -> Planned:
    wants = tuple(LevelWant(Level(name), count, "busy") for name, count in levels.items())
    return plan(seen, Proposal(levels=wants), guards, history or History())


def test_containers_are_granted_with_the_policys_reason_and_their_cost() -> None:
    guards = Guards(prices=Prices(executor=0.25))
    [decision] = decide(fleet(), guards, executor=3).levels
    assert decision == LevelDecision(Level.EXECUTOR, 1, 3, 3, "busy", (), 0.5)


@pytest.mark.parametrize(("asked", "after"), [(9, 3), (1, 2)])
def test_every_level_keeps_its_least_and_its_most(asked: int, after: int) -> None:
    [decision] = decide(fleet(hosts=2), Guards(hosts=(2, 3)), host=asked).levels
    assert (decision.after, decision.vetoes) == (after, ("limits: 2..3 hosts",))


def test_more_than_can_be_had_is_not_asked_for() -> None:
    [decision] = decide(fleet(most=4), Guards(), executor=9).levels
    assert (decision.after, decision.vetoes) == (4, ("limits: 1..4 executors",))


def test_limits_hold_although_the_policy_says_nothing() -> None:
    [decision] = decide(fleet(executors=5), Guards(executors=(1, 2))).levels
    assert (decision.before, decision.after) == (5, 2)
    assert decision.words == "the policy wants no change; limits: 1..2 executors"


def test_money_bounds_what_grows_and_takes_nothing_away() -> None:
    guards = Guards(prices=Prices(executor=1.0), money_per_hour=2.5)
    [decision] = decide(fleet(), guards, executor=4).levels
    assert (decision.after, decision.vetoes) == (
        2,
        ("money: 4 executors would make it 4.00 an hour, 2.50 is allowed",),
    )
    assert decide(fleet(executors=6), guards).levels == ()


def test_with_a_budget_of_zero_nothing_grows_that_costs_and_one_line_says_so() -> None:
    guards = Guards(prices=Prices(executor=1.0), money_per_hour=0.0)
    planned = decide(fleet(), guards, executor=2, host=3)
    assert [(d.level, d.after, d.vetoes) for d in planned.levels] == [
        (Level.EXECUTOR, 1, ("money: 2 executors would make it 2.00 an hour, 0.00 is allowed",)),
        (Level.HOST, 3, ()),
    ]


def test_seats_cost_by_the_host() -> None:
    guards = Guards(prices=Prices(seat=0.1), money_per_hour=1.2)
    [decision] = decide(fleet(seats=4, hosts=2), guards, seat=8).levels
    assert decision.after == 6


@pytest.mark.parametrize(
    ("at", "begins", "ends", "after"),
    [
        ("09:00", "08:00", "18:00", 4),
        ("07:59", "08:00", "18:00", 1),
        ("18:00", "08:00", "18:00", 1),
        ("23:30", "22:00", "06:00", 4),
        ("05:59", "22:00", "06:00", 4),
        ("12:00", "22:00", "06:00", 1),
    ],
)
def test_a_window_of_the_day_has_limits_of_its_own(at: str, begins: str, ends: str, after: int) -> None:
    guards = Guards(windows=(Window("executor", begins, ends, least=4),))
    planned = decide(fleet(at=at), guards)
    assert [d.after for d in planned.levels] == ([after] if after != 1 else [])


def test_a_window_knows_its_zone_and_operators() -> None:
    guards = Guards(windows=(Window("a", "00:00", "02:00", least=3, most=5, zone="Europe/Berlin"),))
    night = plan(fleet(at="23:30"), Proposal((Want("a", 8, "busy"),)), guards, History())
    assert [(d.operator, d.after, d.vetoes) for d in night.decisions] == [("a", 5, ("window 00:00-02:00: 3..5",))]
    assert [d.after for d in plan(fleet(at="23:30"), Proposal(), guards, History()).decisions] == [3]


def test_a_budget_of_disruption_lets_growth_go_first() -> None:
    seen = fleet(hosts=4)
    history = History()
    history.add(seen.ended_s - 10, ["a", Level.HOST])
    history.add(seen.ended_s - 700, ["b"])
    guards = Guards(disruptions=Disruptions(3, in_s=600))
    planned = decide(seen, guards, history, host=2, executor=2)
    assert {(d.level, d.after) for d in planned.levels} == {(Level.HOST, 4), (Level.EXECUTOR, 2)}
    [stayed] = [decision for decision in planned.levels if decision.level is Level.HOST]
    assert stayed.vetoes == ("disruptions: 2 in the last 600 s, 3 are allowed",)


def test_guards_are_the_same_after_a_journal() -> None:
    guards = Guards(
        hosts=(1, 4),
        prices=Prices(executor=0.5),
        money_per_hour=3.0,
        windows=(Window("executor", "08:00", "18:00", least=2),),
        disruptions=Disruptions(4, 600),
    )
    assert parse_guards(to_plain(guards)) == guards


def test_guards_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "guards.yaml"
    file.write_text(
        "executors: [1, 3]\nprices: {executor: 0.5}\nmoney_per_hour: 1.5\n"
        "windows:\n  - {of: executor, begins: '08:00', ends: '18:00', least: 2}\n"
    )
    found = load_guards(str(file))
    assert (found.executors, found.prices.executor, found.money_per_hour) == ((1, 3), 0.5, 1.5)
    assert found.windows == (Window("executor", "08:00", "18:00", least=2),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("executor: [1, 3]", "unknown key 'executor'; there are slots, "),
        ("prices: {executr: 1}", "prices: unknown key 'executr'; there are seat, host, executor"),
        ("windows: [{of: a, begins: '08:00', ends: '09:00', leas: 2}]", "windows: unknown key 'leas'"),
        ("executors: [3, 1]", r"executors must be \(least, most\) with 1 <= least <= most, got \(3, 1\)"),
        ("executors: 3", r"executors: expected array \| null, got 3"),
        ("money_per_hour: -1", "money_per_hour must be 0 or more, got -1"),
        ("windows: [{of: executor, begins: '08', ends: '25:00'}]", "ends must be a time such as 08:00, got '25:00'"),
        ("windows: [{of: executor, begins: '08:00', ends: '09:00', zone: Nowhere}]", "no time zone 'Nowhere'"),
        ("disruptions: {most: 1, in_s: 0}", "disruptions need most >= 0 and in_s > 0, got 1 and 0"),
        ("- 1", r"expected object, got \[1\]"),
    ],
)
def test_a_wrong_file_of_guards_is_refused_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "guards.yaml"
    file.write_text(text)
    with pytest.raises(SettingError, match=said) as refused:
        load_guards(str(file))
    assert str(refused.value).startswith(f"guards {file}: ") and "\n" not in str(refused.value)
