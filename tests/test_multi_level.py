"""Multi-level elasticity: health, the cheapest container that helps, tables, trends and usual loads, by hand-made observations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from elastream.bench.ramp import Benchmark, Ramp, Seen, outcome
from elastream.control import Guards, HostObservation, Observation, Proposal, ReplicaObservation
from elastream.control.guard import History
from elastream.control.level_guards import Prices
from elastream.control.plan import plan
from elastream.control.remarks import other_remarks
from elastream.errors import SettingError
from elastream.fleet import Level, LevelState
from elastream.policies import make_policy
from elastream.policies.multi_level import MultiLevel
from elastream.policies.multi_level.forecast import Foresight
from elastream.policies.multi_level.health import Sources, congested
from elastream.policies.multi_level.scale_out import scale_out
from elastream.policies.multi_level.table import Configuration, Table, merged, parse_table
from elastream.policies.multi_level.trend import Trend
from elastream.policies.multi_level.usual import Usual, learn_usual, load_usual
from elastream.testing import observation, operator, source

TABLE = """\
app: line
rows:
- {up_to: 4000, replicas: {parse: 1}, seats: 8, hosts: 1, executors: 1}
- {up_to: 12000, replicas: {parse: 2}, seats: 8, hosts: 1, executors: 1}
- {up_to: 14000, replicas: {parse: 3}, seats: 8, hosts: 2, executors: 2}
- {up_to: 16000, replicas: {parse: 4}, seats: 8, hosts: 2, executors: 2}
"""


def state(level: Level, planned: int, there: int | None = None, **more: Any) -> LevelState:
    start_s = {Level.SEAT: 0.05, Level.HOST: 2.0, Level.EXECUTOR: 60.0}[level]
    return LevelState(level, planned if there is None else there, planned, planned, 8, start_s, **more)


def seen(
    per_s: float,
    *,
    at_s: float = 0.0,
    served: float = 1.0,
    replicas: int = 1,
    executors: int = 1,
    there: int | None = None,
    cpu: float = 0.5,
    memory: float = 0.5,
    waits: bool = False,
    problem: str = "",
    most: int = 8,
) -> Observation:
    """Ten seconds of a source and a parser that serves this part of what it gets, on machines of two cores."""
    count = round(per_s * 10)
    lanes = tuple(
        ReplicaObservation(n, True, count // replicas, int(count * served) // replicas, 0, 5.0, host=0)
        for n in range(replicas)
    )
    base = observation(
        source("in", count),
        operator(
            "parse",
            {"in": count},
            processed=int(count * served),
            service_ms=1.0,
            replicas=replicas,
            lanes=lanes,
            most=most,
            waits=waits,
        ),
        seconds=10.0,
        ended_s=at_s,
    )
    machines = executors if there is None else there
    hosts = tuple(
        HostObservation(n, f"machine {n}", 2.0, 2.0 * cpu, machine_cpu=cpu, machine_memory=memory)
        for n in range(machines)
    )
    fleet = (
        state(Level.SEAT, 8),
        state(Level.HOST, executors, machines),
        replace(state(Level.EXECUTOR, executors, machines), problem=problem),
    )
    return replace(base, hosts=hosts, fleet=fleet)


def said(proposal: Proposal) -> dict[str, int]:
    return {want.operator: want.replicas for want in proposal.wants} | {
        want.level.value: want.count for want in proposal.levels
    }


def growth_of(look: Observation, overload: float = 0.9) -> tuple[Configuration | None, str]:
    sources = Sources()
    sources.note(look)
    sick = congested(look, sources, 0.9)
    assert sick is not None
    found = scale_out(look, sick, overload)
    return found.configuration, found.reason


# -- health and algorithm 2


def test_the_congested_instance_closest_to_the_sources_is_found() -> None:
    sources = Sources()
    well = seen(1000)
    sources.note(well)
    assert congested(well, sources, 0.9) is None
    sick = seen(1000, served=0.8)
    sources.note(sick)
    found = congested(sick, sources, 0.9)
    assert found is not None
    assert (found.operator, round(found.health, 2), found.is_source) == ("parse", 0.8, False)


def test_a_source_is_as_healthy_as_the_part_of_what_was_due_that_it_emitted() -> None:
    sources = Sources()
    look = observation(source("in", 6000, queued=4000), operator("parse", {"in": 6000}), seconds=10.0)
    sources.note(look)
    found = congested(look, sources, 0.9)
    assert found is not None and found.is_source and found.health == 0.6
    # The same 4,000 still wait, but all that became due since was read.
    sources.note(look)
    assert congested(look, sources, 0.9) is None


def test_a_thread_comes_before_a_machine() -> None:
    configuration, reason = growth_of(seen(6000, served=0.8, cpu=0.5))
    assert configuration is not None
    assert configuration.replicas == {"parse": 2} and configuration.levels[Level.EXECUTOR] == 1
    assert "machine 0 has CPU 0.50, memory 0.50" in reason and "one seat more, there in 0.05 s" in reason


@pytest.mark.parametrize(("cpu", "memory"), [(0.95, 0.5), (0.5, 0.95)])
def test_an_overloaded_machine_asks_for_another_with_its_whole_hierarchy(cpu: float, memory: float) -> None:
    configuration, reason = growth_of(seen(12000, served=0.8, replicas=2, cpu=cpu, memory=memory))
    assert configuration is not None
    assert configuration.replicas == {"parse": 3}
    assert (configuration.levels[Level.EXECUTOR], configuration.levels[Level.HOST]) == (2, 2)
    assert "one executor more, there in 60 s" in reason


def test_processes_that_are_full_on_a_machine_that_is_not_ask_for_a_process() -> None:
    look = seen(6000, served=0.8, cpu=0.5)
    full = replace(look, hosts=(replace(look.hosts[0], cores=1.0, busy_cores=1.0),))
    configuration, reason = growth_of(full)
    assert configuration is not None
    assert configuration.levels[Level.HOST] == 2 and configuration.levels[Level.EXECUTOR] == 1
    assert "one host more, there in 2 s" in reason


def test_threads_that_wait_without_a_seat_ask_for_a_seat() -> None:
    look = seen(6000, served=0.8, cpu=0.1, replicas=8, waits=True, most=64)
    configuration, _ = growth_of(look)
    assert configuration is not None
    assert (configuration.levels[Level.SEAT], configuration.replicas) == (9, {"parse": 9})


def test_replicas_that_wait_need_a_thread_and_no_core() -> None:
    configuration, _ = growth_of(seen(6000, served=0.8, cpu=1.0, waits=True))
    assert configuration is not None
    assert (configuration.replicas, configuration.levels[Level.EXECUTOR]) == ({"parse": 2}, 1)


def test_what_nothing_helps_is_told_once() -> None:
    policy = MultiLevel()
    looks = [policy.propose(seen(6000, at_s=10.0 * n, served=0.8, executors=8, cpu=1.0)) for n in range(1, 4)]
    assert [len(look.alerts) for look in looks] == [1, 0, 0]
    assert looks[0].alerts[0].startswith("nothing helps: parse 0 has health 0.80; machine 0 has CPU 1.00")


def test_a_source_that_is_behind_gets_a_process_and_no_replica() -> None:
    look = replace(seen(1000), operators={"in": source("in", 5000, queued=5000), "parse": seen(500).operators["parse"]})
    configuration, reason = growth_of(look)
    assert configuration is not None
    assert configuration.levels[Level.HOST] == 2 and configuration.replicas == {"parse": 1}
    assert reason.startswith("source in has health 0.50")


def test_with_an_overload_of_nothing_every_replica_gets_a_machine() -> None:
    configuration, _ = growth_of(seen(6000, served=0.8, cpu=0.1), overload=0.0)
    assert configuration is not None and configuration.levels[Level.EXECUTOR] == 2


def test_what_cannot_grow_says_so() -> None:
    assert growth_of(seen(6000, served=0.8, replicas=8))[0] is None
    none, reason = growth_of(seen(6000, served=0.8, executors=8, cpu=1.0))
    assert none is None and "no more than 8 executors can be had" in reason


# -- the table and its controller


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "table.yaml"
    path.write_text(TABLE, encoding="utf-8")
    return str(path)


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


# -- algorithm 1


def test_a_ramp_has_levels_and_a_table_of_what_carried_them() -> None:
    ramp = Ramp(2000, 120, 8000)
    assert ramp.levels == [2000, 4000, 6000, 8000] and ramp.arrivals().seconds == 480
    one, two = Configuration({"parse": 1}), Configuration({"parse": 2})
    looks = [Seen(2000, one, 1.0, ""), Seen(4000, one, 1.0, ""), Seen(6000, one, 0.8, "sick"), Seen(8000, two, 1.0, "")]
    made = outcome("line", ramp, looks)
    assert made.table == Table("line", merged("line", [(4000, one), (8000, two)], 0.9).rows)
    assert made.remarks == (
        "6,000/s: still not well after 120 s (sick); it has what carried the next level, or hold levels longer",
    )


def test_levels_that_nothing_carried_are_not_in_the_table() -> None:
    one = Configuration({"parse": 1})
    made = outcome("line", Ramp(2000, 120, 4000), [Seen(2000, one, 1.0, ""), Seen(4000, one, 0.5, "sick")])
    assert [row.up_to for row in made.table.rows] == [2000]
    assert "the table ends below it" in made.remarks[0]
    with pytest.raises(SettingError, match=r"^ramp: 2,000/s"):
        outcome("line", Ramp(2000, 120, 2000), [Seen(2000, one, 0.5, "sick")])


def test_the_benchmark_remembers_what_it_saw() -> None:
    benchmark = Benchmark(Ramp(2000, 40, 6000))
    benchmark.propose(seen(2000, at_s=10))
    proposal = benchmark.propose(seen(6000, at_s=20, served=0.8))
    assert said(proposal) == {"parse": 2}
    assert [(round(one.per_s), bool(one.problem), bool(one.reason)) for one in benchmark.seen] == [
        (2000, False, False),
        (6000, True, True),
    ]


# -- the usual load


def test_the_usual_load_is_learned_by_hour_and_weekday_and_knows_its_gaps() -> None:
    day, hour = 86_400.0, 3600.0
    monday = 4 * day
    looks = [(monday + hour * (n + 0.5), hour, 3600.0 * (n + 1)) for n in range(24) if n != 5]
    usual = learn_usual(looks)
    assert len(usual.per_second) == 168
    assert usual.at(monday + 8.5 * hour) == 9.0
    assert usual.at(monday + 9.0 * hour) == 9.5, "half way between two hours"
    assert usual.at(monday + 5.5 * hour) is None and usual.at(monday + day) is None
    assert usual.at(monday + 7 * day + 8.5 * hour) == 9.0, "the same in the next week"


def test_a_usual_load_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "usual.yaml"
    usual = Usual(40.0, 10.0, 0.0, (1.0, None, 3.0, 4.0))
    path.write_text(usual.to_yaml(), encoding="utf-8")
    assert load_usual(str(path)) == usual
    path.write_text(usual.to_yaml().replace("40.0", "45.0"), encoding="utf-8")
    with pytest.raises(SettingError, match=r"period_s must be a whole number of slot_s, got 45 and 10"):
        load_usual(str(path))
    path.write_text("per_second: [1]", encoding="utf-8")
    with pytest.raises(SettingError, match=r"expected period_s, slot_s, begins_s, per_second"):
        load_usual(str(path))


def proactive(table: str, tmp_path: Path, rates: tuple[float | None, ...]) -> MultiLevel:
    path = tmp_path / "usual.yaml"
    path.write_text(Usual(len(rates) * 1000.0, 1000.0, 0.0, rates).to_yaml(), encoding="utf-8")
    return MultiLevel(table=table, usual=str(path))


def test_it_asks_for_a_machine_before_the_usual_rise(table: str, tmp_path: Path) -> None:
    policy = proactive(table, tmp_path, (3000.0, 3000.0, 13500.0, 13500.0))
    assert said(policy.propose(seen(3000, at_s=500))) == {}
    # Half way between the middles of the slots it is 8,250/s; 130 s ahead of that 9,615/s.
    proposal = policy.propose(seen(7800, at_s=2000))
    assert said(proposal) == {"parse": 2}
    proposal = policy.propose(seen(11500, at_s=2310, replicas=2))
    assert said(proposal) == {"host": 2, "executor": 2}
    assert proposal.levels[-1].reason.startswith("proactive: 12,870/s is usual within 130 s")


def test_traffic_that_is_not_as_usual_is_told_once_and_met_reactively(table: str, tmp_path: Path) -> None:
    policy = proactive(table, tmp_path, (3000.0, 3000.0, 3000.0, 3000.0))
    assert policy.propose(seen(3000, at_s=500)).alerts == ()
    attacked = policy.propose(seen(9000, at_s=510))
    assert attacked.alerts == ("traffic is not as usual: 9,000/s where 3,000/s is usual; reactive from here on",)
    assert said(attacked) == {"parse": 2}
    assert attacked.wants[0].reason.startswith("reactive: ") and "is not as usual" in attacked.wants[0].reason
    assert policy.propose(seen(9000, at_s=520, replicas=2)).alerts == ()
    back = [policy.propose(seen(3000, at_s=at_s, replicas=2)).alerts for at_s in (530, 540, 550, 560, 570)]
    assert [alert for alerts in back for alert in alerts] == ["traffic is as usual again: 3,000/s, 3,000/s is usual"]


def test_in_a_gap_of_the_usual_load_it_is_reactive_and_says_so(table: str, tmp_path: Path) -> None:
    policy = proactive(table, tmp_path, (3000.0, None, None, 3000.0))
    gap = policy.propose(seen(3000, at_s=1500))
    assert gap.alerts == ("the usual load has a gap at this hour: reactive until it knows again",)
    proposal = policy.propose(seen(9000, at_s=1510))
    assert said(proposal) == {"parse": 2}
    assert proposal.alerts == () and proposal.wants[0].reason.endswith("the usual load has a gap at this hour")


def test_a_gap_that_comes_within_the_lead_is_named_with_its_time() -> None:
    foresight = Foresight(Usual(4000.0, 1000.0, 0.0, (3000.0, None, 3000.0, 3000.0)), 1)
    assert foresight.look(950.0, 3000.0, 130.0).words == "the usual load has a gap within 130 s"


def test_alerts_are_remarks_of_the_interval() -> None:
    class Entry:
        proposal = Proposal(alerts=("traffic is not as usual",))
        observation = observation(source("in", 1))
        levels = moves = ()

    entry: Any = Entry()
    assert other_remarks(entry) == [("alert", "traffic is not as usual")]


@pytest.mark.parametrize("word", ["multi-level:health=2", "multi-level:overload=-1", "multi-level:looks=0"])
def test_parameters_that_make_no_sense_are_refused(word: str) -> None:
    with pytest.raises(SettingError, match=r"^policy 'multi-level': "):
        make_policy(word)
