"""Replicas live where a policy wants them, move with what they remember, and lose nothing when a host dies."""

import os
import signal
from typing import Any

import pytest
from flows import finish, wait_for
from word_counts import counted, counting, expected, words

from elastream.codec import convert, to_plain
from elastream.control import (
    Home,
    HostObservation,
    Observation,
    OperatorObservation,
    Policy,
    Proposal,
    ReplicaObservation,
)
from elastream.control.analyze import analyze
from elastream.control.load import load_of
from elastream.engine.driver.placement.groups import GroupTable
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.driver.placement.hosts import HostRecord, HostTable
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.testing import LocalEngine


class Wants(Policy):
    """Asks for the homes that it is told, in every interval."""

    name, start = "wants", None

    def __init__(self) -> None:
        self.homes: dict[tuple[str, int], int] = {}
        self.seen: Observation | None = None

    def propose(self, observation: Observation) -> Proposal:
        self.seen = observation
        hosts = {host.host for host in observation.hosts}
        return Proposal(homes=tuple(Home(*lane, host, "as told") for lane, host in self.homes.items() if host in hosts))

    def lives(self, operator: str) -> dict[int, int]:
        found = self.seen.operators[operator].lanes if self.seen else ()
        return {lane.lane: lane.host for lane in found if lane.active}


def test_replicas_move_to_the_hosts_that_a_policy_names_and_stay_exact() -> None:
    wants, count = Wants(), 9000
    flow = words(count, 200, 6.0)
    flow.map("same", lambda row: row, after="in", replicas=(3, 3), start=3)
    with LocalEngine(hosts=3, processes=True).start(
        counting(flow, after="same", replicas=(4, 4), start=4), policy=wants, td_s=0.2, benchmark_s=0
    ) as handle:
        wait_for(lambda: len(wants.lives("count")) == 4 and -1 not in wants.lives("count").values())
        assert {host.host for host in wants.seen.hosts} == {0, 1, 2}  # type: ignore[union-attr]
        for shift in range(3):
            wants.homes = {("count", lane): (lane + shift) % 3 for lane in range(4)} | {
                ("same", lane): shift for lane in range(3)
            }
            wait_for(
                lambda: (
                    wants.lives("count") == {lane: (lane + shift) % 3 for lane in range(4)}  # noqa: B023
                    and wants.lives("same") == dict.fromkeys(range(3), shift)  # noqa: B023
                )
            )
        [victim] = [host for host in handle.status.hosts if host.number == 2]
        os.kill(victim.pid, signal.SIGKILL)
        wait_for(lambda: 2 not in wants.lives("same").values())
        finish(handle)
        assert counted(handle) == expected(count, 200)
        assert handle.audit().problems == ()


def observed(*hosts: HostObservation, lanes: tuple[ReplicaObservation, ...] = ()) -> Observation:
    count = OperatorObservation("count", 2, 0, {}, 0, 0, 0, 0, 0.0, 0.01, lanes, length=100.0)
    return Observation(1, 1.0, 1.0, 1, 2, 0, 0, 0, 0, 0.0, 0.0, {"count": count}, hosts=hosts)


@pytest.mark.parametrize(
    ("home", "words"),
    [
        (Home("count", 0, 7, "why"), "no host 7; there are 0"),
        (Home("cuont", 0, 0, "why"), "no operator 'cuont' that can be rescaled; there are count"),
        (Home("count", -1, 0, "why"), "a replica is 0 or more, got -1"),
        (Home("count", 0, 0, None), "homes[0].reason: expected str, got None"),  # type: ignore[arg-type]
    ],
)
def test_a_home_that_cannot_be_is_refused_with_one_line(home: Home, words: str) -> None:
    class Asks(Policy):
        name, start = "asks", None

        def propose(self, observation: Observation) -> Proposal:
            return Proposal(homes=(home,))

    assert words in str(analyze(Asks(), observed(HostObservation(0, "here", 1.0, 0.0))).error)


def test_load_is_told_of_replicas_hosts_and_machines() -> None:
    hosts = [HostObservation(n, machine, 1.0, 0.0) for n, machine in enumerate(("a", "a", "b"))]
    lanes = tuple(ReplicaObservation(n, True, 0, 0, queued, 0.0, host=n) for n, queued in enumerate((50, 100, 0)))
    load = load_of(observed(*hosts, lanes=lanes))
    assert load.lanes.ratios == load.hosts.ratios == (0.5, 1.0, 0.0)
    assert load.machines.ratios == (0.75, 0.0)
    assert load.machines.lb == pytest.approx(0.375) and load.lanes.most == 1.0


def test_observations_with_hosts_and_redirections_survive_a_journal() -> None:
    document: dict[str, Any] = to_plain(observed(HostObservation(0, "here", 1.0, 0.5)))
    again = convert(document, Observation, "journal")
    assert again.hosts == (HostObservation(0, "here", 1.0, 0.5),) and again.hosts[0].free_cores == 0.5
    del document["hosts"], document["redirections"]
    assert convert(document, Observation, "journal").hosts == (), "a journal of before"


def test_a_lane_that_remembers_finds_a_home_in_the_only_host_though_it_is_reserved() -> None:
    hosts, graph = HostTable(), counting(words(1, 1, 1.0)).build()
    homes = LaneHomes(hosts, GroupTable(graph, LedgerState()))
    hosts.join(HostRecord(0, "a", 0, "here", "here"))
    assert homes.isolated_host() is not None and hosts[0].isolated
    assert homes.host_for(LaneId("map", 0), computes=True) is None
    home = homes.settled(LaneId("other", 1))
    assert home is not None and home.host == 0
