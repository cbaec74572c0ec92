"""Keyed state in a simulation: it grows with the keys, moves with its key groups, and is recovered when a machine fails."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from simulations import STORM, TURNS, counting, sized

from elastream import groupings
from elastream.control import Home, JournalEntry, Observation, Policy, Proposal, StateMoved, Want
from elastream.errors import SettingError
from elastream.routing import Sender, Snapshot, lanes_of
from elastream.routing.redirection import redirected
from elastream.simulator.cluster import Cluster, parse_cluster
from elastream.simulator.containers import Containers, Startup
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Failure, Fidelity
from elastream.simulator.key_groups import StateCosts
from elastream.simulator.model import Model, Node
from elastream.simulator.popularity import Popularity
from elastream.simulator.redirecting import redirected_counts
from elastream.simulator.simulate import Simulated
from elastream.simulator.state import Limits
from elastream.topology.groupings import KEY_GROUPS
from elastream.workload import constant

THREE = (Node(4), Node(4), Node(4))


class Script(Policy):
    """Proposals by their interval; the first is of the first second."""

    name = "script"
    start = None

    def __init__(self, **sizes: int) -> None:
        self._sizes = {int(name[1:]): size for name, size in sizes.items()}
        self._interval = -1

    def propose(self, seen: Observation) -> Proposal:
        self._interval += 1
        size = self._sizes.get(self._interval)
        return Proposal((Want("count", size, "as written"),) if size else ())


def watched(model: Model, policy: Any, **more: Any) -> tuple[Simulated, list[JournalEntry]]:
    entries: list[JournalEntry] = []
    run = sized(model, policy, on_entry=entries.append, **more)
    return run, entries


def receipts(entries: list[JournalEntry]) -> list[StateMoved]:
    return [moved for entry in entries for moved in entry.observation.state_moves]


@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_a_rescale_moves_the_fewest_groups_and_the_bytes_that_they_hold(fidelity: Any) -> None:
    model = counting(constant(500, 20.0), start=2, keys=1000, nodes=THREE)
    cluster = Cluster(state=StateCosts(bytes_per_key=50.0))
    run, entries = watched(model, Script(t3=3, t6=2), fidelity=fidelity, cluster=cluster)
    grown, shrunk = receipts(entries)
    most = math.ceil(KEY_GROUPS / 3)
    assert grown.groups == grown.between_hosts == shrunk.groups == most - 1
    # After 3,000 of 1,000 keys' tuples some keys have not come yet; after 6,000 hardly any.
    seen = 1000 * (1 - math.exp(-3.0))
    assert grown.keys == pytest.approx(seen / 3, rel=0.15) and shrunk.keys == pytest.approx(1000 / 3, rel=0.15)
    assert grown.bytes == 50 * grown.keys and grown.problem == ""
    # It is served while it is copied.
    assert 0 < grown.waited_ms < grown.took_ms
    assert run.events.entered == run.events.finished == 10_000
    assert [moved["groups"] for moved in run.record.state_moves] == [grown.groups, shrunk.groups]


def test_groups_go_to_a_replica_on_the_same_machine_first_and_nothing_is_copied() -> None:
    _, entries = watched(counting(constant(500, 15.0), start=2, nodes=(Node(8),)), Script(t3=4))
    (moved,) = receipts(entries)
    assert (moved.groups, moved.between_hosts, moved.bytes, moved.waited_ms) == (64, 0, 0, 0.0)


@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_what_waits_moves_with_its_group(fidelity: Any) -> None:
    # One replica has too much to do; those that come later help it with what waits already.
    model = counting(constant(1500, 12.0), start=1, nodes=THREE)
    run, entries = watched(model, Script(t3=3), fidelity=fidelity)
    before, after = (entries[n].observation.operators["count"].lanes for n in (3, 4))
    assert len(before) == 1 and before[0].queued > 2000
    assert len(after) == 3 and max(lane.queued for lane in after) < 0.4 * before[0].queued
    assert min(lane.processed for lane in after) > 1500
    assert run.events.finished == run.events.entered == 18_000


def killed(ring_s: float, fidelity: Any, keys: int = 200_000) -> Simulated:
    model = counting(constant(2000, 40.0), start=4, pool=4, keys=keys, nodes=THREE)
    state = StateCosts(keys_per_s=3000.0, ring_s=ring_s)
    cluster = Cluster(failures=(Failure("machine", 1, 20.2, 60.0),), state=state)
    run, entries = watched(model, Script(), fidelity=fidelity, cluster=cluster, seconds=60.0)
    assert run.events.entered == run.events.finished == 80_000 and run.events.dropped == 0
    for entry in entries:
        hosts = {host.host for host in entry.observation.hosts}
        assert hosts == ({0, 2} if entry.observation.ended_s > 20.2 else {0, 1, 2})
        assert all(lane.host in hosts for lane in entry.observation.operators["count"].lanes)
    return run


@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_with_the_ring_a_killed_machines_keys_are_served_sooner(fidelity: Any) -> None:
    ring, storage = (killed(ring_s, fidelity).record.latencies.max_s for ring_s in (1.0, 0.0))
    # A fourth of 36,000 keys or more are learned anew, or what changed of them since the last copies.
    assert ring < 0.5 and storage > (3.0 if fidelity is Events else 3 * ring)


def test_a_copy_that_is_not_whole_yet_does_not_help() -> None:
    def longest_s(second_s: float) -> float:
        model = counting(constant(2000, 40.0), start=3, pool=3, keys=200_000, nodes=THREE)
        state = StateCosts(keys_per_s=5000.0)
        failures = (Failure("machine", 1, 20.0, 20.0), Failure("machine", 2, second_s, 20.0))
        run = sized(model, Script(), cluster=Cluster(failures=failures, state=state), seconds=60.0)
        assert run.events.finished == run.events.entered
        return run.record.latencies.max_s

    assert longest_s(20.5) > 2 * longest_s(36.0)


@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_the_ring_costs_cores(fidelity: Any) -> None:
    def latency_s(ring_s: float) -> float:
        busy = counting(constant(1500, 20.0), start=2, keys=100_000, nodes=(Node(1), Node(1)))
        state, turns = StateCosts(keys_per_s=2000.0, ring_s=ring_s), TURNS._replace(cores=2)
        return sized(busy, Script(), turns, fidelity, cluster=Cluster(state=state)).record.latencies.mean_s

    assert latency_s(1.0) > 1.5 * latency_s(0.0)


def test_on_storm_a_state_is_read_when_its_machine_is_back() -> None:
    def waited(keys_per_s: float) -> int:
        model = counting(constant(300, 40.0), start=3, keys=3000, nodes=THREE)
        state = StateCosts(keys_per_s=keys_per_s)
        cluster = Cluster(failures=(Failure("machine", 1, 20.0, 2.0),), state=state)
        run, entries = watched(model, Script(), system=STORM, cluster=cluster)
        assert run.events.entered == run.events.finished + run.events.dropped
        return max(entry.observation.queued for entry in entries)

    assert waited(200.0) > 1.5 * waited(20_000.0)


class Restless(Policy):
    """Another size and other homes in every interval."""

    name = "restless"
    start = None

    def __init__(self, choices: list[int]) -> None:
        self._choices = choices

    def propose(self, seen: Observation) -> Proposal:
        if not self._choices or not seen.hosts:
            return Proposal()
        choice, hosts = self._choices.pop(0), [host.host for host in seen.hosts]
        homes = tuple(
            Home("count", lane.lane, hosts[(choice + lane.lane) % len(hosts)], "elsewhere")
            for lane in seen.operators["count"].lanes
            if choice % 3 == 0 and lane.active
        )
        return Proposal((Want("count", 1 + choice % 8, "as chosen"),), homes=homes)


@settings(deadline=None, max_examples=25, derandomize=True, phases=[Phase.explicit, Phase.generate])
@example(
    [33],
    [
        Failure("machine", 2, 0.5, 3.0),
        Failure("process", 0, 5.9, 2.8),
        Failure("process", 1, 1.25, 3.7),
        Failure("machine", 0, 0.5, 3.0),
    ],
    0.5,
    groupings.redirection("id"),
    Events,
)
@given(
    choices=st.lists(st.integers(0, 40), max_size=8),
    failures=st.lists(
        st.builds(
            Failure,
            st.sampled_from(["machine", "process"]),
            st.integers(0, 2),
            st.floats(0.5, 14.0),
            st.floats(0.1, 8.0),
        ),
        max_size=4,
    ),
    ring_s=st.sampled_from([0.0, 0.5]),
    grouping=st.sampled_from([groupings.fields("id"), groupings.redirection("id")]),
    fidelity=st.sampled_from([Fidelity, Events]),
)
def test_nothing_is_lost_whatever_moves_and_fails(
    choices: list[int], failures: list[Failure], ring_s: float, grouping: Any, fidelity: Any
) -> None:
    model = counting(constant(400, 16.0), start=3, nodes=THREE, keys=4000, zipf=1.0, grouping=grouping)
    cluster = Cluster(failures=tuple(failures), state=StateCosts(keys_per_s=2000.0, ring_s=ring_s))
    run, entries = watched(model, Restless(choices), fidelity=fidelity, cluster=cluster, seconds=200.0)
    assert run.events.entered == run.events.finished == 6400 and run.events.dropped == run.events.queued == 0
    assert not any(entry.error for entry in entries)
    for moved in receipts(entries):
        assert moved.bytes == 10 * moved.keys and moved.between_hosts <= KEY_GROUPS


class Moves(Policy):
    """Gives every replica of `count` a home on one machine in the fourth interval."""

    name = "moves"
    start = None

    def __init__(self, host: int) -> None:
        self._host = host
        self._interval = -1

    def propose(self, seen: Observation) -> Proposal:
        self._interval += 1
        if self._interval != 3:
            return Proposal()
        lanes = seen.operators["count"].lanes
        return Proposal(homes=tuple(Home("count", lane.lane, self._host, "there") for lane in lanes))


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_a_replica_lives_where_it_was_asked_to_and_pays_for_its_state(keyed: bool, fidelity: Any) -> None:
    model = counting(constant(500, 20.0), start=3, pool=3, nodes=THREE, keyed=keyed)
    run, entries = watched(model, Moves(2), fidelity=fidelity)
    assert [sorted(lane.host for lane in e.observation.operators["count"].lanes) for e in entries[3:6]] == [
        [0, 1, 2],
        [2, 2, 2],
        [2, 2, 2],
    ]
    assert run.events.finished == run.events.entered == 10_000 and len(entries[3].moves) == 2
    moved = receipts(entries)
    assert len(moved) == (2 if keyed else 0)
    assert all(its.groups == 0 and its.between_hosts in (42, 43) and its.waited_ms > 0 for its in moved)
    busy = {host.host: host.busy_cores for host in entries[6].observation.hosts}
    assert busy[0] == busy[1] == 0.0 and busy[2] == pytest.approx(0.5, rel=0.1)


def test_replicas_that_were_given_a_home_share_the_cores_of_their_machine() -> None:
    def finished(host: int) -> int:
        model = counting(constant(3000, 20.0), start=4, pool=4, nodes=(Node(1), Node(4)), keyed=False)
        return sized(model, Moves(host), TURNS._replace(cores=5), seconds=20.0).events.finished

    one, four = finished(0), finished(1)
    assert four == pytest.approx(60_000, rel=0.02) and one < 0.6 * four


@pytest.mark.parametrize("by", [groupings.redirection("id"), groupings.redirection()])
@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_redirection_takes_the_load_off_a_slow_machine(by: Any, fidelity: Any) -> None:
    def run(grouping: Any) -> tuple[Simulated, list[JournalEntry]]:
        keyed = bool(grouping.columns)
        nodes = (Node(4), Node(4, speed=0.3))
        model = counting(constant(1600, 40.0), start=4, pool=4, nodes=nodes, grouping=grouping, keyed=keyed)
        return watched(model, Script(), fidelity=fidelity)

    plain, _ = run(groupings.fields("id") if by.columns else groupings.shuffle)
    redirected, entries = run(by)
    assert redirected.events.finished == redirected.events.entered == 64_000
    assert redirected.record.latencies.mean_s < 0.5 * plain.record.latencies.mean_s
    told = [one for entry in entries for one in entry.observation.redirections]
    assert told and all(one.operator == "count" and "with more room" in one.reason for one in told)
    assert told[0].reason.startswith(("lb 0.", "a load ratio of ")) and bool(told[0].groups) == bool(by.columns)


@settings(deadline=None, max_examples=200, derandomize=True, phases=[Phase.generate])
@given(
    rows=st.integers(0, 500),
    queued=st.lists(st.integers(0, 60), min_size=1, max_size=9),
    length=st.sampled_from([10.0, 37.5, 50.0]),
    turn=st.integers(0, 20),
)
def test_the_model_redirects_as_routing_does(rows: int, queued: list[int], length: float, turn: int) -> None:
    ours = redirected_counts(rows, np.array(queued), length, turn).tolist()
    theirs = redirected(rows, [have / length for have in queued], 1 / length, turn)
    assert sum(ours) == sum(theirs) == rows
    assert ours == pytest.approx(theirs, abs=1)


def test_keys_fall_to_the_lanes_to_which_the_engine_sends_them() -> None:
    model = counting(constant(10, 10.0), start=5, keys=300, zipf=1.0)
    keys = Popularity(300, 1.0)
    batch = pa.record_batch({"id": np.arange(300)})
    lanes = lanes_of(groupings.fields("id"), batch, Snapshot(tuple(range(5))), Sender())
    flow = Fidelity(
        model,
        TURNS,
        Limits(0, False, 0.0),
        model.begin({"count": 5}),
        Containers(Startup(), model.nodes),
        seed=1,
    )
    assert flow.moving.weight[:5] == pytest.approx(np.bincount(lanes, keys.shares, 5))
    assert keys.distinct(1e9).sum() == pytest.approx(300) and keys.distinct(0.0).sum() == 0


def test_the_costs_of_state_are_read_from_the_cluster_file() -> None:
    made = parse_cluster({"state": {"bytes_per_key": 200, "mb_per_s": 50, "ring_s": 0}})
    assert made.state == replace(StateCosts(), bytes_per_key=200, mb_per_s=50, ring_s=0)
    with pytest.raises(SettingError, match=r"state: unknown key 'byte_per_key'; did you mean 'bytes_per_key'"):
        parse_cluster({"state": {"byte_per_key": 1}})
    with pytest.raises(SettingError, match="state: mb_per_s must be more than 0, got 0"):
        parse_cluster({"state": {"mb_per_s": 0}})
