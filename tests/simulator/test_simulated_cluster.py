"""What a simulated system runs on: what is started takes its time, what fails is gone, what is crowded is slower."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulations import STORM, TURNS, WAITS, Grows, line, sized, waiting

from elastream import groupings
from elastream.cli.main import main
from elastream.control import Observation, Plant, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream.simulator.cluster import Cluster, parse_cluster
from elastream.simulator.containers import Containers, Startup
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Failure, Fidelity
from elastream.simulator.model import Node
from elastream.simulator.profile import OperatorTimes
from elastream.simulator.storm_steps import StormSteps
from elastream.workload import constant
from elastream_lab.rivals.restarting import RestartingPlant


class GrowsOnce(Policy):
    """From one replica to all in the third interval, by a restart."""

    name = "grows once"
    start = None

    def __init__(self, *, loses: bool) -> None:
        self._intervals = 0
        self._loses = loses

    def wrap(self, plant: Plant) -> Plant:
        return RestartingPlant(plant, 3.0, loses=self._loses)

    def propose(self, seen: Observation) -> Proposal:
        self._intervals += 1
        wants = tuple(Want(o.operator, o.most, "all") for o in seen.scalable()) if self._intervals == 3 else ()
        return Proposal(wants)


@pytest.mark.parametrize("system", [TURNS, STORM])
def test_a_restart_stands_still_and_loses_what_is_queued(system: Any) -> None:
    runs = [
        sized(line(constant(300, 30.0)), GrowsOnce(loses=True), system, fidelity) for fidelity in (Fidelity, Events)
    ]
    for run in runs:
        assert run.events.dropped > 0
        assert run.events.entered == run.events.finished + run.events.dropped == 9000
        gaps = np.diff([sample.t_s for sample in run.record.series.operators["op0"]])
        assert max(gaps) >= 3.0
        assert run.record.latencies.max_s >= 3.0
    fast, exact = (run.record.latencies.mean_s for run in runs)
    assert fast == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("system", [TURNS, STORM])
@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_a_restart_that_pauses_stands_still_and_loses_nothing(system: Any, fidelity: Any) -> None:
    seen: list[Observation] = []
    run = sized(
        line(constant(300, 30.0)),
        GrowsOnce(loses=False),
        system,
        fidelity,
        on_entry=lambda entry: seen.append(entry.observation),
    )
    assert run.events.dropped == 0 and run.events.finished == run.events.entered == 9000
    assert max(np.diff([sample.t_s for sample in run.record.series.operators["op0"]])) >= 3.0
    # The pause is in no observation: the one after it is as long as the others and begins when it is over.
    assert seen[3].ended_s - seen[2].ended_s == pytest.approx(seen[3].seconds + 3.0, abs=0.2)
    assert seen[3].seconds == pytest.approx(seen[2].seconds, abs=0.2)


def test_a_new_machine_takes_longer_than_a_thread() -> None:
    def done(startup: Startup, fidelity: Any, system: Any) -> float:
        nodes = (Node(16, memory_gb=8),) * 4
        model = line(constant(300, 60.0), length=1, pool=4, nodes=nodes)
        return waiting(sized(model, Grows(), system, fidelity, cluster=Cluster(startup=startup), seconds=60.0))

    thread = Startup(thread_s=0.1, process_s=5.0, machine_s=20.0, process_gb=1.0, machines=1)
    process = replace(thread, threads_per_process=1)
    machine = replace(process, process_gb=8.0)
    for system in (TURNS, STORM):
        fast = [done(startup, Fidelity, system) for startup in (thread, process, machine)]
        exact = [done(startup, Events, system) for startup in (thread, process, machine)]
        assert fast[0] < fast[1] < fast[2]
        assert fast == pytest.approx(exact, rel=0.05, abs=4)


def test_containers_are_started_from_the_outside_in_and_used_again() -> None:
    startup = Startup(1.0, 10.0, 100.0, threads_per_process=2, process_gb=8.0, machines=1)
    containers = Containers(startup, [Node(4, memory_gb=16), Node(4, memory_gb=16)])
    found = [containers.place(lane, 0.0) for lane in range(5)]
    # The fourth waits for the process that is being started for the third.
    assert [place.ready_s for place in found] == [1.0, 1.0, 11.0, 11.0, 111.0]
    assert [place.node for place in found] == [0, 0, 0, 0, 1] and containers.machines == 2
    assert sorted(containers.lanes_in("machine", 0)) == [0, 1, 2, 3]
    assert sorted(containers.lanes_in("process", 1)) == [2, 3] and list(containers.lanes_in("thread", 4)) == [4]
    # A thread that was freed is used again, whoever's it was; a machine that is down is not.
    containers.free(1)
    assert [containers.place(lane, 50.0) for lane in (5, 6)] == [(1, 111.0), (0, 51.0)]
    containers.free(6)
    containers.down = {0}
    # In the end nothing more fits: a thread more than there should be, on the machine that is up.
    assert [containers.place(lane, 200.0) for lane in (7, 8, 9)] == [(1, 211.0), (1, 211.0), (1, 201.0)]
    assert list(containers.lanes_in("thread", 1)) == [] and list(containers.lanes_in("process", 99)) == []


def test_replicas_are_spread_over_the_machines_by_their_cores() -> None:
    containers = Containers(Startup(), [Node(1), Node(3)])
    assert [containers.place(lane, 0.0).node for lane in range(8)].count(1) == 6


def test_a_machine_that_is_started_brings_its_cores() -> None:
    busy = OperatorTimes(0.01, cpu=1.0, spread=0.0)

    def served(machine_s: float, system: Any) -> int:
        model = line(constant(1000, 30.0), length=1, pool=8, times=busy, nodes=(Node(2, memory_gb=4),) * 4)
        startup = Startup(machine_s=machine_s, threads_per_process=2, machines=1)
        return sized(model, Grows(), system, cluster=Cluster(startup=startup), seconds=30.0).events.finished

    for system in (STORM, TURNS._replace(cores=8)):
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
    spark = sized(model, "static:replicas=4", TURNS, fidelity, cluster=failures)
    assert spark.events.dropped == 0 and spark.events.finished == spark.events.entered == 9000
    if kind == "thread":
        # It is not there for 8 s, in which 75 tuples a second come for it, until the second failure is over too.
        # Where tuples are only counted, they are taken to leave in the order in which they came.
        assert spark.record.latencies.max_s >= (8.0 if fidelity is Events else 2.0)


def test_a_machine_that_fails_takes_its_slots_along() -> None:
    slots: list[int] = []

    class Looks(Grows):
        def propose(self, seen: Observation) -> Proposal:
            slots.append(seen.slots)
            return Proposal()

    model = line(constant(100, 30.0), nodes=(Node(8), Node(8)))
    sized(model, Looks(), TURNS, cluster=Cluster(failures=(Failure("machine", 1, 10.0, 10.0),)))
    assert set(slots) == {64, 32} and slots[0] == slots[-1] == 64


def test_threads_on_too_few_cores_are_in_one_anothers_way() -> None:
    busy = OperatorTimes(0.01, cpu=1.0, spread=0.0)

    def served(crowding: float, cores: int) -> int:
        model = line(constant(1000, 20.0), length=1, pool=8, times=busy, nodes=(Node(cores),))
        return sized(model, "static:replicas=8", StormSteps(0.005, crowding), seconds=20.0).events.finished

    # Eight threads on two cores do the work of two, and less if they get in one another's way.
    assert served(0.0, 8) == pytest.approx(4 * served(0.0, 2), rel=0.02)
    assert served(0.1, 2) < 0.7 * served(0.0, 2)
    # In the engine those that compute take turns, one per core; those that wait are in one another's way.
    model = line(constant(1000, 20.0), length=1, pool=8, times=replace(busy, cpu=0.4))
    turns = TURNS._replace(cores=2)
    alone, crowded = (
        sized(model, "static:replicas=8", turns._replace(crowding=crowding), seconds=20.0) for crowding in (0.0, 0.2)
    )
    assert crowded.events.finished < 0.7 * alone.events.finished


@pytest.mark.parametrize("system", [TURNS, STORM])
def test_service_times_that_differ_much_have_the_mean_they_should(system: Any) -> None:
    # Of the same work, most takes next to no time and some a hundred times the mean.
    model = line(constant(40, 1000.0), length=1, pool=2, times=replace(WAITS, spread=8.0))
    for fidelity in (Fidelity, Events):
        run = sized(model, "static:replicas=2", system, fidelity, seconds=1000.0)
        samples = run.record.series.operators["op0"]
        busy_s, processed = sum(s.busy_s for s in samples), sum(s.processed for s in samples)
        assert busy_s / processed == pytest.approx(0.01, rel=0.2)


def test_skewed_keys_fill_one_lane_before_the_others() -> None:
    def fullest(zipf: float) -> float:
        model = line(constant(300, 30.0), length=1, pool=4, grouping=groupings.fields("id"), zipf=zipf)
        run = sized(model, "static:replicas=4", seconds=30.0)
        return max(sample.lanes.lb for sample in run.record.loads)

    assert fullest(1.5) > 5 * fullest(0.0)


WHOLE = {
    "nodes": [{"count": 2, "cores": 4}, {"cores": 8, "speed": 0.5, "memory_gb": 32}],
    "startup": {"thread_s": 0.1, "process_s": 4, "machine_s": 40, "process_gb": 8, "machines": 2},
    "failures": [{"machine": 2, "at_s": 60, "for_s": 30}, {"thread": 3, "at_s": 5, "for_s": 0.5}],
    "crowding": 0.02,
    "zipf": 1.2,
}


def test_a_cluster_is_read_from_a_file() -> None:
    made = parse_cluster(WHOLE)
    assert made.nodes == (Node(4), Node(4), Node(8, 0.5, 32))
    assert made.startup == Startup(0.1, 4, 40, process_gb=8, machines=2)
    assert made.failures == (Failure("machine", 2, 60, 30), Failure("thread", 3, 5, 0.5))
    assert (made.crowding, made.keys, made.zipf) == (0.02, 1000, 1.2)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"node": []}, "unknown key 'node'; did you mean 'nodes'?"),
        ({"zipf": "much"}, "zipf must be a number, got 'much'"),
        ({"keys": 0}, "keys must be more than 0"),
        ({"nodes": {"cores": 2}}, "nodes: expected a list"),
        ({"nodes": [{"speed": 1}]}, "nodes.0.: expected cores"),
        ({"nodes": [{"cores": 2, "count": 0}]}, "count must be 1..100000, got 0"),
        ({"startup": {"machines": 4}}, "machines must be 1..3, got 4"),
        ({"startup": {"process_s": -1}}, "process_s must be 0 or more, got -1"),
        ({"failures": [{"machine": 3, "at_s": 1, "for_s": 1}]}, "there is no machine 3; the first is 0, there are 3"),
        ({"failures": [{"at_s": 1, "for_s": 1}]}, "expected one of machine, process, thread"),
        ({"failures": [{"thread": 0.5, "at_s": 1, "for_s": 1}]}, "thread must be a whole number from 0 on"),
        ({"failures": [{"thread": 0, "at_s": 1}]}, "expected for_s"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        parse_cluster(WHOLE | changed)


def test_a_cluster_file_is_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", "tweets", "--trace", "constant:per_second=100,seconds=20", "--service-ms", "5", "--json"]
    path = tmp_path / "cluster.yaml"
    path.write_text("nodes: [{cores: 4}]\nfailures: [{machine: 0, at_s: 5, for_s: 5}]\n", encoding="utf-8")
    assert main([*words, "--system", "storm", "--cluster", str(path)]) == 0
    assert '"dropped": 0' not in capsys.readouterr().out.split('"latency_ms"')[0]
    path.write_text("nodes: [", encoding="utf-8")
    assert main([*words, "--cluster", str(path)]) == 2
    assert "not YAML" in capsys.readouterr().err
    assert main([*words, "--system", "storm", "--q-size", "10"]) == 2
    assert "on_full must be drop" in capsys.readouterr().err
