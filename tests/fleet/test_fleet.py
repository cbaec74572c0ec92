"""Seats, hosts and executors of the engine: they come, hand over and go while the stream flows."""

from pathlib import Path
from typing import Any

import pytest
from flows import wait_for
from word_counts import check_emitted, counted, counting, expected, words

from elastream.control import JournalEntry, LevelWant, Observation, Policy, Proposal
from elastream.engine.handle import RunHandle
from elastream.errors import SettingError
from elastream.fleet import Level
from elastream.fleet.engine_fleet import EngineFleet, HostFact
from elastream.fleet.machines import MachineFacts
from elastream.fleet.orders import MOST_ASKS, Orders
from elastream.testing import LocalEngine


class Cluster:
    """Executors that come when the test says so."""

    def __init__(self, names: tuple[str, ...] = ("1",), per_machine: int = 2, most: int = 3) -> None:
        self.names, self.per_machine, self.most = names, per_machine, most
        self.asked: list[int] = []
        self.given_back: list[tuple[str, ...]] = []

    def look(self) -> MachineFacts:
        return MachineFacts(self.names, self.per_machine * len(self.names), self.per_machine)

    def ask(self, total: int) -> None:
        self.asked.append(total)

    def give_back(self, names: tuple[str, ...], total: int) -> None:
        self.given_back.append(names)
        self.names = tuple(name for name in self.names if name not in names)


class Processes:
    """Hosts that come at once, each on the executor with the fewest; they hand over when the test says so."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.hosts: dict[int, HostFact] = {}
        self.retired: list[int] = []
        self.seated = 4

    def there(self) -> list[HostFact]:
        return list(self.hosts.values())

    def keep(self, host: int) -> None:
        on = [fact.executor for fact in self.hosts.values()]
        self.hosts[host] = HostFact(host, min(self.cluster.names, key=on.count), False)

    def retire(self, host: int) -> None:
        self.retired.append(host)

    def hand_over(self) -> None:
        for host in self.retired:
            self.hosts.pop(host, None)

    def seat(self, seats: int) -> None:
        self.seated = seats

    def seats(self) -> int:
        return self.seated


class Fleet:
    """A fleet, and its clock."""

    def __init__(self, cluster: Cluster) -> None:
        self.now_s = 0.0
        self.cluster, self.hosts = cluster, Processes(cluster)
        self.fleet = EngineFleet(self.hosts, cluster, lambda: self.now_s, seats=4)
        self.later(0.0)

    def later(self, seconds: float) -> None:
        self.now_s += seconds
        self.fleet.step()

    def numbers(self, level: Level) -> tuple[int, int, int]:
        """Planned, asked for, there: at the next look."""
        self.later(0.06)
        [state] = [state for state in self.fleet.look() if state.level is level]
        return state.planned, state.asked, state.there


def test_until_somebody_decides_there_are_as_many_hosts_as_there_is_room_for() -> None:
    fleet = Fleet(Cluster(("1", "2")))
    assert fleet.numbers(Level.HOST) == (4, 4, 4)
    fleet.cluster.names = ("1", "2", "3")
    fleet.later(1.0)
    assert fleet.numbers(Level.HOST) == (6, 6, 6)
    assert fleet.numbers(Level.EXECUTOR) == (3, 3, 3)
    assert fleet.cluster.asked == []


def test_an_executor_that_is_asked_for_is_planned_then_asked_for_then_there() -> None:
    fleet = Fleet(Cluster())
    fleet.fleet.grow(Level.EXECUTOR, 1)
    assert fleet.numbers(Level.EXECUTOR) == (2, 2, 1)
    assert fleet.cluster.asked == [2]
    fleet.cluster.names = ("1", "2")
    fleet.later(7.0)
    assert fleet.numbers(Level.EXECUTOR) == (2, 2, 2)
    [executors] = [state for state in fleet.fleet.look() if state.level is Level.EXECUTOR]
    assert executors.start_s == pytest.approx(7.06) and executors.measured == 1
    assert fleet.numbers(Level.HOST) == (4, 4, 4), "a machine comes with its whole hierarchy"


def test_an_executor_that_does_not_come_is_asked_for_again_and_then_reported() -> None:
    fleet = Fleet(Cluster())
    fleet.fleet.grow(Level.EXECUTOR, 1)
    for _ in range(MOST_ASKS):
        fleet.later(31.0)
    assert fleet.cluster.asked == [2] * (1 + MOST_ASKS)
    [state] = [state for state in fleet.fleet.look() if state.level is Level.EXECUTOR]
    assert state.problem == "2 executors asked for 3 times in 93 s, 1 there; look whether the cluster has room"
    fleet.cluster.names = ("1", "9")
    fleet.later(1.0)
    assert [state.problem for state in fleet.fleet.look()] == ["", "", ""]


def test_the_executor_that_came_last_is_given_back_after_its_hosts_have_handed_over() -> None:
    fleet = Fleet(Cluster(("1", "2", "3")))
    fleet.fleet.shrink(Level.EXECUTOR, 1)
    fleet.later(1.0)
    gone = {host.number for host in fleet.hosts.there() if host.executor == "3"}
    assert set(fleet.hosts.retired) == gone and len(gone) == 2
    assert fleet.cluster.given_back == [], "its hosts still have something"
    fleet.hosts.hand_over()
    fleet.later(1.0)
    assert fleet.cluster.given_back == [("3",)]
    assert fleet.numbers(Level.EXECUTOR) == (2, 2, 2) and fleet.numbers(Level.HOST) == (4, 4, 4)


def test_the_host_that_came_last_goes_first_and_one_that_never_came_before_it() -> None:
    fleet = Fleet(Cluster(("1", "2")))
    del fleet.hosts.hosts[1]
    fleet.fleet.shrink(Level.HOST, 2)
    assert fleet.hosts.retired == [1, 3]


def test_the_executor_of_the_only_host_that_stays_is_not_given_back() -> None:
    fleet = Fleet(Cluster(("1", "2", "3"), per_machine=1))
    fleet.hosts.hosts = {n: HostFact(n, name, False) for n, name in enumerate(("3", "1", "2"))}
    fleet.fleet.shrink(Level.HOST, 2)
    assert fleet.hosts.retired == [2, 1]
    fleet.hosts.hand_over()
    fleet.fleet.shrink(Level.EXECUTOR, 2)
    fleet.later(1.0)
    assert fleet.hosts.retired == [2, 1], "or nobody would be left to hand over to"
    assert fleet.cluster.names == ("3",)


def test_hosts_beyond_the_room_wait_for_an_executor() -> None:
    fleet = Fleet(Cluster())
    fleet.fleet.grow(Level.HOST, 2)
    assert fleet.numbers(Level.HOST) == (4, 4, 2)
    fleet.cluster.names = ("1", "2")
    fleet.later(1.0)
    assert fleet.numbers(Level.HOST) == (4, 4, 4)


def test_an_executor_that_dies_while_another_is_added_is_missed_and_asked_for() -> None:
    fleet = Fleet(Cluster(("1", "2")))
    fleet.fleet.grow(Level.EXECUTOR, 1)
    fleet.cluster.names = ("2", "3")
    fleet.later(1.0)
    assert fleet.numbers(Level.EXECUTOR) == (3, 3, 2)
    fleet.later(31.0)
    assert fleet.cluster.asked == [3, 3]


def test_start_times_are_learned_from_those_that_came() -> None:
    orders = Orders(Level.HOST, planned=1, most=8, start_s=2.0, there=1)
    orders.plan(3)
    assert orders.due(10.0) == 3
    orders.saw(2, 11.0)
    orders.saw(3, 12.0)
    assert orders.start_s == pytest.approx(1.0 + 0.3 * 1.0) and orders.measured == 2


# -- the engine itself


def levels(handle: RunHandle) -> dict[str, tuple[int, int]]:
    return {state.level.value: (state.planned, state.there) for state in handle.fleet}


def test_hosts_come_and_go_under_a_stream_of_keys_and_nothing_is_lost(tmp_path: Path) -> None:
    count, keys = 30_000, 500
    with LocalEngine(hosts=4).start(counting(words(count, keys, 6.0), start=6), str(tmp_path)) as handle:
        wait_for(lambda: handle.totals("count").processed > 2000)
        for hosts, replicas in ((2, 2), (4, 6), (1, 1), (3, 4)):
            handle.scale("count", replicas)
            handle.set_level("host", hosts)
            wait_for(lambda: levels(handle)["host"] == (hosts, hosts) and len(handle.status.hosts) == hosts)  # noqa: B023
        assert handle.await_end(60)
        assert counted(handle) == expected(count, keys)
        check_emitted(handle, expected(count, keys))
        audit = handle.audit()
    assert audit.problems == () and audit.duplicates == 0
    assert [state.measured > 0 for state in handle.fleet if state.level is Level.HOST] == [True]


def test_seats_bound_what_waits_in_a_host_and_are_there_at_once(tmp_path: Path) -> None:
    from elastream import Topology, sources
    from elastream.workload import constant

    flow = Topology("waits")
    flow.source("in", sources.replay(constant(200.0, 60.0)))
    flow.map("slow", _slow, after="in", replicas=(1, 8), start=8, waits=True).output("out")
    with LocalEngine(hosts=1).start(flow, str(tmp_path)) as handle:
        hosts = handle._run.driver.tables.hosts

        def waiting() -> int:
            return handle._run.life.ask(lambda: max(len(host.works) - host.computing for host in hosts))

        handle.set_level("seat", 2)
        wait_for(lambda: levels(handle)["seat"] == (2, 2))
        wait_for(lambda: waiting() == 2)
        handle.set_level("seat", 6)
        wait_for(lambda: waiting() == 6)
        wait_for(lambda: levels(handle)["seat"] == (6, 6))
        [seats] = [state for state in handle.fleet if state.level is Level.SEAT]
        assert seats.measured > 0


def _slow(row: dict[str, Any]) -> dict[str, Any]:
    import time

    time.sleep(0.05)
    return row


class Grows(Policy):
    """Asks for one host more in every interval."""

    name = "grows"
    start = None

    def propose(self, seen: Observation) -> Proposal:
        state = seen.level(Level.HOST)
        assert state is not None
        return Proposal(levels=(LevelWant(Level.HOST, state.planned + 1, "one more"),))


def test_what_a_policy_wants_of_containers_is_planned_within_the_guards_and_observed(tmp_path: Path) -> None:
    from elastream import Guards

    guards, entries = Guards(hosts=(1, 3)), list[JournalEntry]()
    with LocalEngine(hosts=4).start(
        counting(words(8000, 50, 4.0)), str(tmp_path), policy=Grows(), td_s=0.5, guards=guards
    ) as handle:
        handle.on_decision(entries.append)
        assert handle.await_end(60)
    said = [decision for entry in entries for decision in entry.levels]
    assert {(d.level, d.after) for d in said} == {(Level.HOST, 3)}
    assert said[0].words == "one more; limits: 1..3 hosts"
    assert [state.there for state in entries[-1].observation.fleet if state.level is Level.HOST] == [3]
    assert all(host.memory_bytes > 0 for host in entries[-1].observation.hosts)


@pytest.mark.parametrize(("level", "count"), [("machine", 2), ("host", 0), ("seat", True)])
def test_a_level_that_is_none_is_refused(level: str, count: int, tmp_path: Path) -> None:
    with (
        LocalEngine(hosts=1).start(counting(words(10, 5, 0.1)), str(tmp_path)) as handle,
        pytest.raises(SettingError, match="level"),
    ):
        handle.set_level(level, count)
