"""Dr-Stream and Storm's default: first fit by hand, only the difference moves, and what both do on a simulated cluster."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from simulations import STORM, TURNS, counting, sized

from elastream import groupings
from elastream.control import HostObservation, JournalEntry, Observation, Proposal, ReplicaObservation, load_of
from elastream.errors import SettingError
from elastream.policies import make_policy
from elastream.policies.dr_stream import DrStream
from elastream.report import make_report
from elastream.simulator.cluster import Cluster
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Failure, Fidelity
from elastream.simulator.model import Node
from elastream.simulator.redirecting import is_uneven
from elastream.simulator.state import LENGTH, LOOKED_S, LOOKS_S, REDIRECTS, TIMES
from elastream.testing import observation, operator, source
from elastream.workload import constant
from elastream_lab.bench.suites.suite import load_suite
from elastream_lab.bench.suites.suite_model import simulator_of
from elastream_lab.rivals.storm_default import StormDefault

MACHINES = (HostObservation(0, "a", 2.0, 0.0), HostObservation(1, "b", 4.0, 0.0), HostObservation(2, "c", 1.0, 0.0))


def seen(
    homes: dict[str, list[int]],
    *,
    cores: dict[str, float] | None = None,
    hosts: tuple[HostObservation, ...] = MACHINES,
    queued: dict[str, list[int]] | None = None,
    late_s: float = 0.1,
    finished: int = 1000,
) -> Observation:
    """Operators in a line, their replicas in these hosts; an instance of each takes so many cores, for ten seconds."""
    rows = [source("in", 1000)]
    before = "in"
    for name, its in homes.items():
        busy_s = 10.0 * (cores or {}).get(name, 0.0) * len(its)
        waiting = (queued or {}).get(name, [0] * len(its))
        lanes = tuple(ReplicaObservation(n, True, 0, 0, waiting[n], 0.0, host=host) for n, host in enumerate(its))
        made = operator(name, {before: 1000}, replicas=len(its), processed=1000 if cores else 0)
        rows.append(
            replace(made, lanes=lanes, busy_seconds=busy_s, cpu_share=1.0, most=20, length=100.0, queued=sum(waiting))
        )
        before = name
    made_of = observation(*rows, seconds=10.0)
    return replace(made_of, hosts=hosts, latency_mean_s=late_s, entered=1000, finished=finished)


def moved(proposal: Proposal) -> dict[tuple[str, int], int]:
    return {(home.operator, home.lane): home.host for home in proposal.homes}


def test_first_fit_by_hand() -> None:
    # By their cores: host 1 with four, host 0 with two, host 2 with one.
    cores = {"read": 1.0, "count": 1.5}
    proposal = DrStream().propose(seen({"read": [0, 0], "count": [0, 0, 0]}, cores=cores))
    # read: 1 (3 left) and 0 (1 left), and one of them is there. count: 1 (1.5 left), then no other has 1.5: 0 has most (1.0) of
    # the two others that are alike, and 2 is left.
    assert moved(proposal) == {("read", 1): 1, ("count", 1): 1, ("count", 2): 2}
    assert proposal.wants == ()
    # Six instances on three machines: two on each, and what does not fit where most is left.
    six = DrStream().propose(seen({"read": [-1] * 6}, cores={"read": 1.0}))
    assert sorted(moved(six).values()) == [0, 0, 1, 1, 2, 2]


def test_instances_are_on_different_machines_before_they_are_on_different_hosts() -> None:
    hosts = tuple(HostObservation(n, "a" if n < 3 else "b", 1.0, 0.0) for n in range(4))
    found = moved(DrStream().propose(seen({"read": [-1, -1, -1]}, cores={"read": 0.1}, hosts=hosts)))
    assert sorted(found.values()) == [0, 1, 3]


def test_only_the_difference_moves_and_only_when_tuples_are_late() -> None:
    policy = DrStream(latency_ms=500)
    cores = {"read": 1.0, "count": 0.5}
    first = policy.propose(seen({"read": [0, 0], "count": [0, 0, 0]}, cores=cores))
    assert moved(first) == {("read", 1): 1, ("count", 1): 1, ("count", 2): 2}
    # All as it was: nothing moves, and when a latency is too long, nothing either.
    settled = {"read": [0, 1], "count": [0, 1, 2]}
    assert policy.propose(seen(settled, cores=cores)) == Proposal()
    assert policy.propose(seen(settled, cores=cores, late_s=0.6)).homes == ()
    # One is where it should not be: it alone moves.
    late = policy.propose(seen({"read": [0, 0], "count": [2, 1, 0]}, cores=cores, late_s=0.6))
    assert moved(late) == {("read", 1): 1}
    assert late.homes[0].reason == "latency 600 ms is above 500: first fit anew"


def test_too_little_throughput_adds_two_fifths_of_the_instances() -> None:
    policy = DrStream()
    homes = {"read": [1, 0], "count": [1, 0, 2]}
    cores = {"read": 0.9, "count": 0.85}
    policy.propose(seen(homes, cores=cores))
    busy = tuple(replace(host, busy_cores=1.9) for host in MACHINES)
    proposal = policy.propose(seen(homes, cores=cores, hosts=busy, finished=899))
    assert {want.operator: want.replicas for want in proposal.wants} == {"read": 3, "count": 5}
    assert proposal.wants[0].reason == "throughput 90/s is below 90: 40% more instances"
    # read's third on the machine that has none of it; count's on those with most room, each on another one.
    assert moved(proposal) == {("read", 2): 2, ("count", 3): 1, ("count", 4): 0}
    assert policy.propose(seen(homes, cores=cores, finished=900)).wants == ()
    assert DrStream(per_second=60).propose(seen(homes, cores=cores, finished=601)).wants == ()
    # An operator that mostly waits is not the limit: a slow start, or a hot key, asks for no more of it.
    idle = seen(homes, cores=cores | {"count": 0.7}, hosts=busy, finished=10)
    assert {want.operator: want.replicas for want in policy.propose(idle).wants} == {"read": 3}


def test_an_uneven_load_is_redirected_and_sizes_stay() -> None:
    policy = DrStream()
    homes = {"read": [1, 0]}
    policy.propose(seen(homes))
    (want,) = policy.propose(seen(homes, queued={"read": [90, 0]})).wants
    assert (want.replicas, want.reason) == (2, "lb 0.45 of replicas is above 0.30: tuples are redirected")
    (full,) = policy.propose(seen(homes, queued={"read": [120, 100]})).wants
    assert full.reason == "a load ratio of replicas of 1.20 is above 0.99: tuples are redirected"


def test_replicas_of_a_host_that_is_gone_are_placed_anew() -> None:
    for policy in (DrStream(), StormDefault()):
        policy.propose(seen({"read": [0, 1, 2]}))
        left = policy.propose(seen({"read": [0, -1, 2]}, hosts=MACHINES[::2]))
        assert set(moved(left)) == {("read", 1)} and set(moved(left).values()) <= {0, 2}
        assert left.homes[0].reason.startswith("its host is gone")


def test_a_host_that_comes_gets_instances_and_an_instance_that_had_nothing_to_do_stays() -> None:
    policy = DrStream()
    first = policy.propose(seen({"read": [0, 0, -1]}, cores={"read": 0.1}, hosts=MACHINES[:2]))
    assert moved(first) == {("read", 1): 1, ("read", 2): 1}
    # No host has seen the third yet: it was put somewhere, and is not put there again.
    assert policy.propose(seen({"read": [0, 1, -1]}, cores={"read": 0.1}, hosts=MACHINES[:2], late_s=9.0)).homes == ()
    back = policy.propose(seen({"read": [0, 1, 1]}, cores={"read": 0.1}))
    assert set(moved(back).values()) == {2} and back.homes[0].reason == "a host has come: first fit anew"


def test_a_balance_that_hovers_at_its_bound_does_not_flap() -> None:
    row = np.zeros(REDIRECTS)
    row[[LENGTH, LOOKS_S, LOOKED_S]] = 100.0, 0.25, -1.0

    def looks(fuller: int, number: int) -> bool:
        return bool(is_uneven(row, np.array([fuller, 0]), number * 0.3, False))

    # Two replicas: half of the fuller one's ratio is the balance, 0.30, then 0.33 and 0.29 in turn.
    assert not looks(60, 0)
    assert all(looks(66 if number % 2 else 58, number) for number in range(1, 40))
    assert row[TIMES] == 1
    assert not looks(40, 40) and not looks(58, 41) and looks(66, 42)


def test_storms_default_deals_replicas_out_in_turn_and_leaves_them_there() -> None:
    hosts = tuple(HostObservation(n, "ab"[n // 2], 1.0, 0.0) for n in range(4))
    policy = StormDefault()
    found = policy.propose(seen({"read": [-1] * 3, "count": [-1] * 3}, hosts=hosts))
    assert [home.host for home in found.homes] == [0, 2, 1, 3, 0, 2]
    loaded = seen({"read": [0, 2, 1], "count": [3, 0, 2]}, hosts=hosts, queued={"read": [900, 0, 0]}, late_s=9.0)
    assert policy.propose(loaded) == Proposal()


@pytest.mark.parametrize("name", ["dr-stream:latency_ms=50", "storm-default"])
def test_the_same_observations_give_the_same_proposals(name: str) -> None:
    script = [
        seen({"read": [0, 0], "count": [0, 0, 0]}),
        seen({"read": [0, 0], "count": [0, 0, 0]}, cores={"read": 1.0, "count": 0.3}, late_s=2.0, finished=10),
        seen({"read": [0, -1], "count": [0, -1, 2]}, cores={"read": 1.0, "count": 0.3}, hosts=MACHINES[::2]),
    ]
    one, other = make_policy(name), make_policy(name)
    assert [one.propose(its) for its in script] == [other.propose(its) for its in script]
    assert make_policy(name).propose(observation(source("in", 1), operator("a", {"in": 1}))) == Proposal()


def test_parameters_that_cannot_be_are_refused() -> None:
    with pytest.raises(SettingError, match="latency_ms must be more than 0, got 0"):
        make_policy("dr-stream:latency_ms=0")
    with pytest.raises(SettingError, match="must be 0 or more"):
        make_policy("dr-stream:p_ins=-1")


# -- on a simulated cluster


def run(policy: str, nodes: tuple[Node, ...], **more: Any) -> list[JournalEntry]:
    entries: list[JournalEntry] = []
    rate, system = more.pop("rate", 1500), more.pop("system", TURNS)
    cluster, fidelity = more.pop("cluster", Cluster()), more.pop("fidelity", Fidelity)
    model = counting(constant(rate, 40.0), start=4, pool=8, nodes=nodes, keys=5000, **more)
    done = sized(model, policy, system, fidelity, cluster=cluster, on_entry=entries.append)
    assert done.events.entered == done.events.finished and done.events.dropped == 0
    assert not any(entry.error for entry in entries)
    return entries


def lbs(entries: list[JournalEntry]) -> list[float]:
    """While tuples come."""
    return [load_of(entry.observation).lanes.lb for entry in entries if entry.observation.ended_s <= 40.0]


NODES = (Node(4), Node(4), Node(4), Node(4))


@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_skewed_keys_are_even_again_after_a_few_decisions(fidelity: Any) -> None:
    def of(grouping: Any, policy: str) -> list[float]:
        return lbs(run(policy, NODES, grouping=grouping, zipf=1.1, rate=3000, fidelity=fidelity))

    theirs = of(groupings.fields("id"), "storm-default")
    ours = of(groupings.redirection("id"), "dr-stream:p_ins=0")
    # By the highest load ratio it is out of range before its balance is.
    assert max(theirs) > 0.3 and max(ours) < max(theirs)
    assert all(lb <= 0.3 for lb in ours[5:])


@pytest.mark.parametrize("grouping", [groupings.redirection("id"), groupings.redirection()])
def test_a_slow_machine_gets_less(grouping: Any) -> None:
    slow = (*NODES[:3], Node(4, speed=0.3))
    entries = run("dr-stream:p_ins=0", slow, grouping=grouping, keyed=bool(grouping.columns), rate=2000)
    found = lbs(entries)
    first = next(n for n, lb in enumerate(found) if lb > 0.1)
    # Tuples go by load while it is out of range, and in turn while it is not: it stays about there, as in the paper.
    assert all(lb <= (0.3 if grouping.columns else 0.33) for lb in found[first + 5 :])
    lanes = entries[-6].observation.operators["count"].lanes
    there = [lane.processed for lane in lanes if lane.host == 3]
    assert max(there) < 0.7 * max(lane.processed for lane in lanes)


@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_a_machine_that_comes_back_gets_replicas_again(fidelity: Any) -> None:
    cluster = Cluster(failures=(Failure("machine", 1, 11.0, 10.0),))
    entries = run("dr-stream:p_ins=0", NODES, grouping=groupings.redirection("id"), cluster=cluster, fidelity=fidelity)
    homes = {e.observation.ended_s: {lane.host for lane in e.observation.operators["count"].lanes} for e in entries}
    assert all(1 not in hosts for at_s, hosts in homes.items() if 14.0 <= at_s < 21.0)
    back = [at_s for at_s, hosts in homes.items() if at_s >= 21.0 and 1 in hosts]
    assert back and back == [at_s for at_s in homes if at_s >= back[0]]
    came = [e.observation.ended_s for e in entries if e.observation.ended_s >= 21.0]
    # It is seen in one decision and has its replicas by the next.
    assert came.index(back[0]) <= 2
    after = came.index(back[0])
    assert all(lb <= 0.3 for lb in lbs(entries)[-len(came) + after + 5 :])


@pytest.mark.parametrize("policy", ["dr-stream:p_ins=0", "storm-default"])
@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_no_replica_stays_on_a_dead_machine(policy: str, fidelity: Any) -> None:
    cluster = Cluster(failures=(Failure("machine", 1, 11.0, 60.0),))
    entries = run(policy, NODES, grouping=groupings.redirection("id"), cluster=cluster, fidelity=fidelity)
    assert any(1 in {lane.host for lane in e.observation.operators["count"].lanes} for e in entries[1:5])
    for entry in entries:
        if entry.observation.ended_s > 14.0:
            assert {host.host for host in entry.observation.hosts} == {0, 2, 3}
            assert {lane.host for lane in entry.observation.operators["count"].lanes} <= {0, 2, 3}
    assert all(lb <= 0.3 for lb in lbs(entries)[-5:])


def test_on_storm_too_replicas_leave_a_dead_machine() -> None:
    entries: list[JournalEntry] = []
    model = counting(constant(400, 40.0), start=4, nodes=NODES, grouping=groupings.shuffle, keyed=False)
    cluster = Cluster(failures=(Failure("machine", 1, 11.0, 60.0),))
    sized(model, "dr-stream:p_ins=0", STORM, cluster=cluster, on_entry=entries.append)
    gone = [[lane.host for lane in e.observation.operators["count"].lanes] for e in entries]
    assert any(-1 in hosts for hosts in gone) and all(
        -1 not in h for h, e in zip(gone, entries, strict=True) if e.observation.ended_s > 14.5
    )


# -- the suites of the paper's figures


FIGURES = [f"dr-stream-fig-{number}" for number in range(19, 26)]


def test_one_set_of_parameters_is_used_for_all_figures() -> None:
    suites = [load_suite(name) for name in FIGURES]
    assert all(suite.simulated == suites[0].simulated for suite in suites)
    assert {(s.td_s, s.q_size, s.on_full) for suite in suites for s in suite.scenarios} == {(2, 100, "drop")}
    policies = {(s.policy, s.grouping) for suite in suites for s in suite.scenarios}
    assert policies == {("dr-stream", "redirection"), ("storm-default", "fields")}
    assert {len(its) for its in (dict(s.paper) for suite in suites for s in suite.scenarios)} == {0, 1}


def test_gains_over_storms_default_are_near_the_papers() -> None:
    suite = load_suite("dr-stream-fig-20")
    plant = simulator_of(suite, None, None)

    def done(name: str) -> tuple[float, int, dict[str, Any]]:
        scenario = replace(next(s for s in suite.scenarios if s.name == name), seconds=10.0)
        run = plant.simulate(scenario)
        report = make_report(run.record, run.events)
        return report["latency_ms"]["mean"], run.events.finished, report["load"]

    ours, theirs = done("top-n 1500/s Dr-Stream"), done("top-n 1500/s default")
    # Within a factor of 1.5 of 20 % less latency and 30 % more throughput, a better balance, and a fullest replica held at 0.99.
    assert 0.136 < 1 - ours[0] / theirs[0] < 0.306
    assert 0.199 < ours[1] / theirs[1] - 1 < 0.447
    assert ours[2]["machines"]["lb_mean"] < 0.9 * theirs[2]["machines"]["lb_mean"]
    assert 0.95 < ours[2]["fullest_mean"] <= 1.0


@pytest.mark.parametrize(
    ("simulated", "said"),
    [
        ({"sistem": "storm"}, "unknown key 'sistem'; did you mean 'system'"),
        ({"system": "flink"}, "system must be spark or storm, got 'flink'"),
        ({"cluster": {"nodes": 3}}, "cluster: nodes: expected a list"),
        ({"times": {"app": {"a": {"service": 1}}}}, "times: app: a: unknown key 'service'; did you mean 'service_ms'"),
        ({"times": {"app": {"a": {"service_ms": -1}}}}, "service_ms must be a number, 0 or more, got -1"),
        ({"fidelity": "exact"}, "fidelity must be ticks or events, got 'exact'"),
        ({"times": {"app": 1}}, "times: app: expected keys with values, got 1"),
    ],
)
def test_a_model_that_cannot_be_is_refused(simulated: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        simulator_of(replace(load_suite(FIGURES[0]), simulated=simulated), None, None)
