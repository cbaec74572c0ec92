"""The simulator: nothing is lost in it, the fast one agrees with the exact one, and the same seed gives the same run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from elastream import Topology, groupings, sources
from elastream.cli.main import main
from elastream.control import Guards, Observation, Proposal, Want
from elastream.errors import SettingError
from elastream.policies import make_policy
from elastream.scoring import make_report
from elastream.simulator.cluster import Cluster
from elastream.simulator.containers import Containers, Startup
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Failure, Fidelity
from elastream.simulator.model import Model, Node, make_model
from elastream.simulator.profile import OperatorTimes, load_profile, parse_profile
from elastream.simulator.simulate import Simulated, simulate
from elastream.simulator.spark_ticks import SparkTicks
from elastream.simulator.state import Limits
from elastream.simulator.storm_steps import StormSteps
from elastream.topology import Grouping
from elastream.workload import Arrivals, constant, steps

PATIENT = settings(deadline=None, max_examples=15, derandomize=True, phases=[Phase.generate])

TICKS = SparkTicks(
    base_s=0.1,
    task_s=0.005,
    tuple_s=1e-5,
    spread=0.0,
    reads_at=0.6,
    slots=64,
    cores=16,
    threads_tasks=32,
    budget_s=0.2,
    max_budget_s=0.6,
    heartbeat_s=0.5,
    elastic=True,
    lane_s=0.002,
)
STORM = StormSteps(step_s=0.002, crowding=0.0)
WAITS = OperatorTimes(0.01, cpu=0.0, spread=0.0)
"""Ten milliseconds in which no core is needed."""


def line(
    arrivals: Arrivals,
    *,
    length: int = 2,
    pool: int = 8,
    grouping: Grouping = groupings.shuffle,
    times: OperatorTimes = WAITS,
    shares: tuple[float, ...] = (),
    nodes: tuple[Node, ...] = (Node(16),),
    start: int = 1,
    zipf: float = 0.0,
) -> Model:
    """Operators one behind another; `shares` say how much each passes on."""
    flow = Topology("line").source("in", sources.replay(arrivals))
    known = {"in": OperatorTimes(1e-6, 1.0, 0.0)}
    before = "in"
    for number in range(length):
        name = f"op{number}"
        flow.batch(
            name, lambda batch: batch, after=before, replicas=(1, pool), start=start, grouping=grouping, waits=True
        )
        share = shares[number] if number < len(shares) else 1.0
        known[name] = replace(times, shares={f"op{number + 1}": share, "out": share})
        before = name
    graph = flow.output("out", after=before).build()
    return make_model(graph, known, {"in": arrivals}, nodes=nodes, zipf=zipf)


def sized(model: Model, policy: Any, system: Any = TICKS, fidelity: Any = Fidelity, **more: Any) -> Simulated:
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    seconds = more.pop("seconds", 1000.0)
    return simulate(
        model, system, chosen, td_s=2.0, seed=more.pop("seed", 1), seconds=seconds, fidelity=fidelity, **more
    )


def waiting(run: Simulated) -> float:
    """The mean of all that waits, over time."""
    rows = list(zip(*(run.record.series.operators[name] for name in run.record.pools), strict=True))
    total = sum(sum(sample.queued for sample in row) * row[0].seconds for row in rows)
    return total / sum(row[0].seconds for row in rows)


GROUPINGS = (groupings.shuffle, groupings.load_balancing, groupings.least_loaded)
BOUNDS = (Limits(0, False, 0.0), Limits(50, True, 0.0), Limits(50, False, 0.0), Limits(0, False, 1.5))


@PATIENT
@given(
    rates=st.lists(st.integers(20, 600), min_size=1, max_size=4),
    length=st.integers(1, 4),
    pool=st.integers(1, 8),
    grouping=st.sampled_from([*GROUPINGS, groupings.all_, groupings.global_]),
    shares=st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0]), max_size=4),
    bounds=st.sampled_from(BOUNDS),
    policy=st.sampled_from(["psps", "static:replicas=3", "ds2", "dabs", "threshold"]),
    system=st.sampled_from([TICKS, STORM]),
    fidelity=st.sampled_from([Fidelity, Events]),
    seed=st.integers(0, 5),
)
def test_every_tuple_is_somewhere(
    rates: list[int],
    length: int,
    pool: int,
    grouping: Grouping,
    shares: list[float],
    bounds: Limits,
    policy: str,
    system: Any,
    fidelity: Any,
    seed: int,
) -> None:
    times = replace(WAITS, spread=0.3)
    model = line(steps(rates, 12.0), length=length, pool=pool, grouping=grouping, shares=tuple(shares), times=times)
    run = sized(model, policy, system, fidelity, limits=bounds, seed=seed, seconds=25.0, cluster=Cluster(restart_s=0.5))
    events = run.events
    assert events.entered == events.finished + events.dropped + events.queued
    assert min(events.entered, events.finished, events.dropped, events.queued) >= 0
    samples = [sample for its in run.record.series.operators.values() for sample in its]
    assert sum(sample.entered for sample in samples) == events.entered
    assert sum(sample.finished for sample in samples) == events.finished
    assert all(sample.queued >= 0 for sample in samples)
    assert all(
        1 <= sample.replicas <= pool for name in run.record.pools for sample in run.record.series.operators[name]
    )


def both(low: int, high: int, length: int, pool: int, grouping: Grouping, share: float) -> tuple[Simulated, Simulated]:
    model = line(steps([low, high, low], 60.0), length=length, pool=pool, grouping=grouping, shares=(share,) * length)
    policy = f"static:replicas={pool}"
    return sized(model, policy, seconds=60.0), sized(model, policy, fidelity=Events, seconds=60.0)


@PATIENT
@given(
    low=st.integers(50, 200),
    high=st.integers(300, 600),
    length=st.integers(1, 4),
    pool=st.integers(2, 6),
    grouping=st.sampled_from([groupings.shuffle, groupings.least_loaded]),
    share=st.sampled_from([0.5, 1.0]),
)
def test_the_fast_simulation_has_the_queues_of_the_exact_one(
    low: int, high: int, length: int, pool: int, grouping: Grouping, share: float
) -> None:
    fast, exact = both(low, high, length, pool, grouping, share)
    # To two per cent; where next to nothing waits, to a tuple a replica.
    assert waiting(fast) == pytest.approx(waiting(exact), rel=0.02, abs=pool * length)
    assert fast.record.latencies.mean_s == pytest.approx(exact.record.latencies.mean_s, rel=0.05)


@pytest.mark.parametrize(("low", "high", "length", "pool"), [(150, 500, 3, 4), (60, 450, 2, 2), (80, 600, 1, 3)])
def test_with_load_balancing_the_two_agree_when_much_waits(low: int, high: int, length: int, pool: int) -> None:
    # One choice leads to the next, and the two may come to different ones.
    fast, exact = both(low, high, length, pool, groupings.load_balancing, 1.0)
    assert waiting(fast) == pytest.approx(waiting(exact), rel=0.05)


@PATIENT
@given(low=st.integers(50, 200), high=st.integers(350, 600), pool=st.integers(1, 3), length=st.integers(1, 3))
def test_the_fast_steps_have_the_queues_of_discrete_events(low: int, high: int, pool: int, length: int) -> None:
    model = line(steps([low, high, low], 30.0), length=length, pool=pool)
    fast = sized(model, f"static:replicas={pool}", STORM, seconds=30.0)
    exact = sized(model, f"static:replicas={pool}", STORM, Events, seconds=30.0)
    # In service at any moment: up to one tuple a replica.
    assert waiting(fast) == pytest.approx(waiting(exact), rel=0.02, abs=pool * length)


@pytest.mark.parametrize("system", [TICKS, STORM])
@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_the_same_seed_gives_the_same_run_to_the_byte(system: Any, fidelity: Any) -> None:
    noisy = system._replace(spread=0.2) if system is TICKS else system
    model = line(steps([100, 400, 100], 20.0), times=replace(WAITS, spread=0.5))

    def document(seed: int) -> str:
        run = sized(model, "psps", noisy, fidelity, seed=seed)
        return json.dumps(make_report(run.record, run.events), sort_keys=True)

    assert document(7) == document(7)
    assert document(7) != document(8)


def test_a_replica_serves_what_its_ticks_leave_of_its_time() -> None:
    # 100 services a second, in 0.2 s of every tick of 0.2 s and 0.1 s of overhead and a little for the task.
    model = line(constant(400, 60.0), length=1, pool=1)
    run = sized(model, "static:replicas=1", TICKS._replace(max_budget_s=0.2), seconds=60.0)
    served = sum(sample.processed for sample in run.record.series.operators["op0"])
    assert served / 60 == pytest.approx(100 * 0.2 / (0.2 + 0.11), rel=0.03)
    assert run.record.usable["op0"] == pytest.approx(0.2 / 0.31, rel=0.03)


def test_a_record_at_a_time_replica_is_busy_all_the_time() -> None:
    for fidelity in (Fidelity, Events):
        run = sized(line(constant(400, 60.0), length=1, pool=2), "static:replicas=2", STORM, fidelity, seconds=60.0)
        served = sum(sample.processed for sample in run.record.series.operators["op0"])
        assert served / 60 == pytest.approx(200, rel=0.01)


def test_psps_sizes_a_simulated_stream_and_loses_nothing() -> None:
    run = sized(line(steps([50, 400, 50], 90.0)), "psps")
    sizes = [sample.replicas for sample in run.record.series.operators["op0"]]
    assert min(sizes) == 1 and max(sizes) >= 6
    assert run.events.finished == run.events.entered and not run.events.queued
    assert "can be used" in run.record.rescales[0].reason


class GrowsOnce:
    """From one replica to all in the third interval, by a restart."""

    name = "grows once"
    start = None

    def __init__(self) -> None:
        self._intervals = 0

    def propose(self, seen: Observation) -> Proposal:
        self._intervals += 1
        wants = tuple(Want(o.operator, o.most, "all") for o in seen.scalable()) if self._intervals == 3 else ()
        return Proposal(wants, restart=bool(wants))


@pytest.mark.parametrize("system", [TICKS, STORM])
def test_a_restart_stands_still_and_loses_what_is_queued(system: Any) -> None:
    runs = [
        sized(line(constant(300, 30.0)), GrowsOnce(), system, fidelity, cluster=Cluster(restart_s=3.0))
        for fidelity in (Fidelity, Events)
    ]
    for run in runs:
        assert run.events.dropped > 0
        assert run.events.entered == run.events.finished + run.events.dropped == 9000
        gaps = np.diff([sample.t_s for sample in run.record.series.operators["op0"]])
        assert max(gaps) >= 3.0
        assert run.record.latencies.max_s >= 3.0
    fast, exact = (run.record.latencies.mean_s for run in runs)
    assert fast == pytest.approx(exact, rel=0.1)


class Grows:
    """From one replica to all, once."""

    name = "grows"
    start = None

    def propose(self, seen: Observation) -> Proposal:
        return Proposal(tuple(Want(o.operator, o.most, "all") for o in seen.scalable()))


def test_a_new_machine_takes_longer_than_a_thread() -> None:
    def done(startup: Startup, fidelity: Any, system: Any) -> float:
        nodes = (Node(16, memory_gb=8),) * 4
        model = line(constant(300, 60.0), length=1, pool=4, nodes=nodes)
        return waiting(sized(model, Grows(), system, fidelity, cluster=Cluster(startup=startup), seconds=60.0))

    thread = Startup(thread_s=0.1, process_s=5.0, machine_s=20.0, process_gb=1.0, machines=1)
    process = replace(thread, threads_per_process=1)
    machine = replace(process, process_gb=8.0)
    for system in (TICKS, STORM):
        fast = [done(startup, Fidelity, system) for startup in (thread, process, machine)]
        exact = [done(startup, Events, system) for startup in (thread, process, machine)]
        assert fast[0] < fast[1] < fast[2]
        assert fast == pytest.approx(exact, rel=0.05, abs=4)


def test_containers_are_started_from_the_outside_in_and_used_again() -> None:
    startup = Startup(1.0, 10.0, 100.0, threads_per_process=2, process_gb=8.0, machines=1)
    containers = Containers(startup, [Node(4, memory_gb=16), Node(4, memory_gb=16)])
    found = [containers.place(lane) for lane in range(5)]
    assert [place.after_s for place in found] == [1.0, 1.0, 11.0, 1.0, 111.0]
    assert [place.node for place in found] == [0, 0, 0, 0, 1] and containers.machines == 2
    assert sorted(containers.lanes_in("machine", 0)) == [0, 1, 2, 3]
    assert sorted(containers.lanes_in("process", 1)) == [2, 3] and list(containers.lanes_in("thread", 4)) == [4]
    # A thread that was freed is used again, whoever's it was; a machine that is down is not.
    containers.free(1)
    assert [containers.place(lane) for lane in (5, 6)] == [(1, 1.0), (0, 1.0)]
    containers.free(6)
    containers.down = {0}
    # In the end nothing more fits: a thread more than there should be, on the machine that is up.
    assert [containers.place(lane) for lane in (7, 8, 9)] == [(1, 11.0), (1, 1.0), (1, 1.0)]
    assert list(containers.lanes_in("thread", 1)) == [] and list(containers.lanes_in("process", 99)) == []


def test_replicas_are_spread_over_the_machines_by_their_cores() -> None:
    containers = Containers(Startup(), [Node(1), Node(3)])
    assert [containers.place(lane).node for lane in range(8)].count(1) == 6


def test_a_machine_that_is_started_brings_its_cores() -> None:
    busy = OperatorTimes(0.01, cpu=1.0, spread=0.0)

    def served(machine_s: float, system: Any) -> int:
        model = line(constant(1000, 30.0), length=1, pool=8, times=busy, nodes=(Node(2, memory_gb=4),) * 4)
        startup = Startup(machine_s=machine_s, threads_per_process=2, machines=1)
        return sized(model, Grows(), system, cluster=Cluster(startup=startup), seconds=30.0).events.finished

    ticks = TICKS._replace(cores=8, base_s=0.01)
    for system in (STORM, ticks):
        # Three of four machines are there after 15 of 30 seconds, or at once.
        assert served(15.0, system) == pytest.approx(0.625 * served(0.0, system), rel=0.1)


def test_a_slow_node_and_one_that_fails_make_a_run_slower() -> None:
    arrivals = constant(250, 40.0)

    def latency(nodes: tuple[Node, ...], failures: tuple[Failure, ...] = ()) -> float:
        model = line(arrivals, length=1, pool=4, nodes=nodes)
        run = sized(model, "static:replicas=4", STORM, cluster=Cluster(failures=failures))
        assert run.events.entered == run.events.finished + run.events.dropped + run.events.queued == 10_000
        return run.record.latencies.mean_s

    even = latency((Node(4), Node(4)))
    assert latency((Node(4), Node(4, speed=0.4))) > 2 * even
    assert latency((Node(4), Node(4)), (Failure("machine", 1, 10.0, 5.0),)) > 2 * even


@pytest.mark.parametrize("kind", ["machine", "process", "thread"])
@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_what_waits_for_what_fails_is_lost_on_storm_and_not_on_spark(kind: Any, fidelity: Any) -> None:
    model = line(constant(300, 30.0), length=1, pool=4, nodes=(Node(8), Node(8)))
    failures = Cluster(failures=(Failure(kind, 0, 10.0, 5.0), Failure(kind, 0, 12.0, 6.0)))
    storm = sized(model, "static:replicas=2", STORM, fidelity, cluster=failures)
    assert storm.events.dropped > 0
    spark = sized(model, "static:replicas=4", TICKS, fidelity, cluster=failures)
    assert spark.events.dropped == 0 and spark.events.finished == spark.events.entered == 9000
    if kind == "thread":
        # It is not there for 8 s, in which 75 tuples a second come for it, until the second failure is over too.
        assert spark.record.latencies.max_s >= 8.0


def test_a_machine_that_fails_takes_its_slots_along() -> None:
    slots: list[int] = []

    class Looks(Grows):
        def propose(self, seen: Observation) -> Proposal:
            slots.append(seen.slots)
            return Proposal()

    model = line(constant(100, 30.0), nodes=(Node(8), Node(8)))
    sized(model, Looks(), TICKS, cluster=Cluster(failures=(Failure("machine", 1, 10.0, 10.0),)))
    assert set(slots) == {64, 32} and slots[0] == slots[-1] == 64


def test_threads_on_too_few_cores_are_in_one_anothers_way() -> None:
    busy = OperatorTimes(0.01, cpu=1.0, spread=0.0)

    def served(crowding: float, cores: int) -> int:
        model = line(constant(1000, 20.0), length=1, pool=8, times=busy, nodes=(Node(cores),))
        return sized(model, "static:replicas=8", StormSteps(0.005, crowding), seconds=20.0).events.finished

    # Eight threads on two cores do the work of two, and less if they get in one another's way.
    assert served(0.0, 8) == pytest.approx(4 * served(0.0, 2), rel=0.02)
    assert served(0.1, 2) < 0.7 * served(0.0, 2)
    model = line(constant(1000, 20.0), length=1, pool=8, times=busy)
    ticks = TICKS._replace(cores=2, max_budget_s=0.2)
    alone, crowded = (
        sized(model, "static:replicas=8", ticks._replace(crowding=crowding), seconds=20.0) for crowding in (0.0, 0.1)
    )
    assert crowded.events.finished < 0.7 * alone.events.finished


@pytest.mark.parametrize("system", [TICKS, STORM])
def test_service_times_that_differ_much_have_the_mean_they_should(system: Any) -> None:
    # Of the same work, most takes next to no time and some a hundred times the mean.
    model = line(constant(40, 2000.0), length=1, pool=2, times=replace(WAITS, spread=8.0))
    for fidelity in (Fidelity, Events):
        run = sized(model, "static:replicas=2", system, fidelity, seconds=2000.0)
        samples = run.record.series.operators["op0"]
        busy_s, processed = sum(s.busy_s for s in samples), sum(s.processed for s in samples)
        lanes_s = system.lane_s * run.ticks if system is TICKS else 0.0
        assert busy_s / processed == pytest.approx(0.01 + lanes_s / processed, rel=0.15)


def test_skewed_keys_fill_one_lane_before_the_others() -> None:
    def fullest(zipf: float) -> float:
        model = line(constant(300, 30.0), length=1, pool=4, grouping=groupings.fields("id"), zipf=zipf)
        run = sized(model, "static:replicas=4", seconds=30.0)
        return max(sample.lb for sample in run.record.loads)

    assert fullest(1.5) > 5 * fullest(0.0)


def test_the_clairvoyant_keeps_its_limit_with_the_least_replica_seconds() -> None:
    arrivals = steps([60, 500, 60, 300, 60], 150.0)
    model = line(arrivals, pool=12)

    def done(word: str) -> tuple[float, float]:
        policy = make_policy(word)
        if hasattr(policy, "foresee"):
            policy.foresee((arrivals,))
        run = sized(model, policy, STORM, guards=Guards(slack=0.0))
        assert run.events.finished == run.events.entered
        seconds = sum(
            sample.replicas * sample.seconds
            for name in run.record.pools
            for sample in run.record.series.operators[name]
        )
        return seconds, run.record.latencies.percentile_s(0.99)

    best, waits_s = done("oracle:latency_s=2")
    # What a percentile is known to, and what an interval allows.
    assert waits_s <= 2.5
    for other in ("psps", "ds2", "threshold", "static:replicas=12"):
        seconds, waited_s = done(other)
        # Whoever takes fewer replica seconds breaks the limit.
        assert seconds >= 0.98 * best or waited_s > 2.0, other
    with pytest.raises(SettingError, match="latency_s must be more than 0"):
        make_policy("oracle:latency_s=0")


def test_memory_does_not_grow_with_the_length_of_a_run() -> None:
    model = line(constant(50, 12_000.0), length=1, pool=2)
    run = sized(model, "static:replicas=2", TICKS._replace(heartbeat_s=5.0), seconds=12_000.0)
    assert all(len(samples) <= 4100 for samples in run.record.series.operators.values())
    assert len(run.record.tick_ms) <= 100_000


def test_simulate_writes_the_report_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "tweets", "--trace", "steps:rates=50/300/50,seconds=60", "--service-ms", "5", "--td", "2"]
    assert main([*words, "--seed", "3", "--report", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["events"]["finished"] == document["events"]["entered"] == 8000
    assert document["rescales"] > 0 and document["ai_sps"]["index"] is not None
    assert {path.name for path in tmp_path.iterdir()} >= {"report.json", "series.parquet", "report.html"}
    assert main([*words, "--seed", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == document
    three = tmp_path / "three.yaml"
    three.write_text("nodes: [{count: 3, cores: 2}]\n")
    assert main([*words, "--system", "storm", "--cluster", str(three), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["latency_ms"]["mean"] < document["latency_ms"]["mean"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not a profile"),
        ('{"version": 9}', "of version 9, expected 1"),
        ('{"version": 1, "machine": {}, "apps": {}}', "not a profile"),
    ],
)
def test_a_damaged_profile_is_refused(text: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        parse_profile(text, "profile x")


def test_a_profile_says_what_it_does_not_know() -> None:
    profile = load_profile(None)
    with pytest.raises(SettingError, match=r"the profile knows .*tweets.*elastream calibrate mine"):
        profile.times("mine")
    assert parse_profile(json.dumps(profile.to_json()), "again") == profile
    bad = profile.to_json()
    bad["machine"]["cores"] = 0
    with pytest.raises(SettingError, match="cores must be 1 or more"):
        parse_profile(json.dumps(bad), "profile x")
