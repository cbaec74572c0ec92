"""Multi-level elasticity by a table: how it is read, when its controller changes row, and what stops it."""

from pathlib import Path

import pytest
from multi_level_looks import TABLE, said, seen, write_table

from elastream.control import Guards
from elastream.control.guard import History
from elastream.control.level_guards import Prices
from elastream.control.plan import plan
from elastream.errors import SettingError
from elastream.fleet import Level
from elastream.policies import make_policy
from elastream.policies.multi_level import MultiLevel
from elastream.policies.multi_level.table import parse_table
from elastream.policies.multi_level.trend import Trend


@pytest.fixture
def table(tmp_path: Path) -> str:
    return write_table(tmp_path)


def test_a_table_is_read_and_written_as_it_was() -> None:
    read = parse_table(TABLE, "it")
    assert parse_table(read.to_yaml(), "it") == read
    assert [row.up_to for row in read.rows] == [4000, 12000, 14000, 16000]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rows: []", "expected rows, a list with one entry or more"),
        ("- 1", "expected rows"),
        ("rows: [{up_to: 1, replicas: {a: 1}}]\nmore: 2", "unknown key 'more'"),
        ("rows: [{up_to: 1, replicas: {a: 0}}]", "row 1: a must be a whole number, 1 or more, got 0"),
        ("rows: [{up_to: 0, replicas: {a: 1}}]", "row 1: up_to must be tuples per second"),
        (
            "rows: [{up_to: 2, replicas: {a: 1}}, {up_to: 1, replicas: {a: 2}}]",
            "row 2: up_to must rise from row to row",
        ),
        ("rows: [{up_to: 2, replicas: {a: 1}, cores: 2}]", "row 1: unknown key 'cores'"),
        ("rows: [", "not YAML"),
    ],
)
def test_a_table_that_is_wrong_is_refused_with_one_line(text: str, problem: str) -> None:
    with pytest.raises(SettingError, match=r"^table it") as caught:
        parse_table(text, "it")
    assert problem in str(caught.value) and "\n" not in str(caught.value)


def test_a_table_that_is_not_there_is_said_when_the_policy_is_made() -> None:
    with pytest.raises(SettingError, match=r"table nowhere.yaml: cannot be read.*elastream ramp"):
        make_policy("multi-level:table=nowhere.yaml")


def test_the_controller_scales_out_above_the_upper_threshold_and_names_the_start_up_time(table: str) -> None:
    policy = make_policy(f"multi-level:table={table}")
    assert said(policy.propose(seen(3000, at_s=10))) == {}
    proposal = policy.propose(seen(9000, at_s=20))
    assert said(proposal) == {"parse": 2}
    assert "above 4,000/s, the upper threshold" in proposal.wants[0].reason
    proposal = policy.propose(seen(13900, at_s=30, replicas=2))
    assert said(proposal) == {"host": 2, "executor": 2}, "replicas follow when the machine is there"
    assert "one executor more is there in 60 s" in proposal.levels[-1].reason


def test_replicas_follow_when_the_machine_is_there(table: str) -> None:
    policy = make_policy(f"multi-level:table={table}")
    for at_s in (10, 20, 30):
        policy.propose(seen(13500, at_s=at_s, replicas=2))
    waiting = policy.propose(seen(13500, at_s=40, replicas=2, executors=2, there=1))
    assert said(waiting) == {}
    assert said(policy.propose(seen(13500, at_s=50, replicas=2, executors=2))) == {"parse": 3}


def test_one_observation_is_no_trend_downwards(table: str) -> None:
    policy = make_policy(f"multi-level:table={table}")
    for at_s in (10, 20, 30):
        policy.propose(seen(9000, at_s=at_s, replicas=2))
    assert said(policy.propose(seen(2000, at_s=40, replicas=2))) == {}, "a moment of calm"
    assert said(policy.propose(seen(9000, at_s=50, replicas=2))) == {}
    answers = [said(policy.propose(seen(2000, at_s=at_s, replicas=2))) for at_s in (60, 70, 80)]
    assert answers == [{}, {}, {"parse": 1}]


def test_a_constant_rate_at_a_threshold_does_not_oscillate(table: str) -> None:
    policy = make_policy(f"multi-level:table={table}")
    replicas, changes = 1, 0
    for look in range(60):
        rate = 4000 + (150 if look % 2 else -150)
        proposal = policy.propose(seen(rate, at_s=10.0 * look, replicas=replicas))
        changes += len(proposal.wants)
        replicas = said(proposal).get("parse", replicas)
    assert changes <= 1


def test_what_came_last_goes_first(table: str) -> None:
    policy = make_policy(f"multi-level:table={table}")
    for at_s in (10, 20, 30):
        policy.propose(seen(15000, at_s=at_s, replicas=4, executors=2))
    answers = [said(policy.propose(seen(9000, at_s=at_s, replicas=4, executors=2))) for at_s in (40, 50, 60)]
    assert answers == [{}, {}, {"parse": 2, "host": 1, "executor": 1}]


def test_beyond_its_table_it_goes_on_by_algorithm_two(table: str) -> None:
    policy = make_policy(f"multi-level:table={table}")
    for at_s in (10, 20, 30):
        policy.propose(seen(16000, at_s=at_s, replicas=4, executors=2))
    proposal = policy.propose(seen(20000, at_s=40, replicas=4, executors=2, served=0.7, cpu=1.0))
    assert said(proposal) == {"host": 3, "executor": 3}


def test_a_table_that_promised_too_much_is_not_believed_for_long(table: str) -> None:
    policy = make_policy(f"multi-level:table={table}")
    answers = [said(policy.propose(seen(3000, at_s=10.0 * look, served=0.7))) for look in range(3)]
    assert answers == [{}, {}, {"parse": 2}]


def test_without_a_table_it_finds_one_and_goes_back_by_it() -> None:
    policy = MultiLevel()
    assert said(policy.propose(seen(6000, at_s=10, served=0.8))) == {"parse": 2}
    for at_s in (20, 30, 40):
        assert said(policy.propose(seen(6000, at_s=at_s, replicas=2))) == {}
    assert [round(row.up_to) if row.up_to < 1e9 else None for row in policy.rows] == [4800, None]
    answers = [said(policy.propose(seen(1000, at_s=at_s, replicas=2))) for at_s in (50, 60, 70)]
    assert answers == [{}, {}, {"parse": 1}]


def test_a_cluster_that_refuses_is_named_and_what_is_there_goes_on(table: str) -> None:
    policy = make_policy(f"multi-level:table={table}")
    for at_s in (10, 20, 30):
        policy.propose(seen(15000, at_s=at_s, replicas=1, executors=1))
    late = "2 executors asked for 3 times in 400 s, 1 there; look whether the cluster has room"
    proposal = policy.propose(seen(15000, at_s=40, replicas=1, executors=2, there=1, problem=late))
    assert said(proposal) == {"parse": 2}, "the largest configuration for which there are machines"
    assert late in proposal.wants[0].reason


def test_a_budget_of_nothing_keeps_the_machines_and_says_so(table: str) -> None:
    policy = make_policy(f"multi-level:table={table}")
    look = seen(13500, at_s=10, replicas=2)
    guards = Guards(prices=Prices(executor=1.0), money_per_hour=0.0)
    planned = plan(look, policy.propose(look), guards, History())
    assert [(decision.level, decision.before, decision.after) for decision in planned.levels] == [
        (Level.HOST, 1, 2),
        (Level.EXECUTOR, 1, 1),
    ]
    assert planned.levels[-1].vetoes == ("money: 2 executors would make it 2.00 an hour, 0.00 is allowed",)


def test_the_trend_is_the_line_of_least_squares() -> None:
    trend = Trend(3)
    for at_s, per_s in ((0, 100), (10, 200), (20, 300), (30, 500)):
        trend.add(at_s, per_s)
    assert trend.slope == pytest.approx(15.0)
    assert trend.now == pytest.approx(1000 / 3 + 150)
    assert trend.highest == 500


@pytest.mark.parametrize("word", ["multi-level:health=2", "multi-level:overload=-1", "multi-level:looks=0"])
def test_parameters_that_make_no_sense_are_refused(word: str) -> None:
    with pytest.raises(SettingError, match=r"^policy 'multi-level': "):
        make_policy(word)
