"""Every fleet keeps one contract: planned, asked for and there are three numbers, and containers come and go in their own time."""

from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from simulations import STORM, counting

from elastream.fleet import Fleet, Level, LevelState
from elastream.fleet.engine_fleet import EngineFleet, HostFact
from elastream.fleet.machines import MachineFacts
from elastream.simulator.containers import Containers, Startup
from elastream.simulator.fidelity import Failure, Fidelity
from elastream.simulator.fleet import SimulatedFleet
from elastream.simulator.model import Node
from elastream.simulator.state import Limits
from elastream.workload import constant


class Driver(Protocol):
    """A fleet, and a way to let time pass for it."""

    fleet: Fleet
    levels: tuple[Level, ...]
    """Those whose containers this fleet can start and end."""

    def wait(self, seconds: float) -> None: ...


class SimulatedDriver:
    """Three machines with room for two processes each; one of them runs. A thread takes 0.1 s, a process 1 s, a machine 5 s."""

    levels = tuple(Level)

    def __init__(self, *, failures: tuple[Failure, ...] = (), **startup: Any) -> None:
        its = Startup(0.1, 1.0, 5.0, threads_per_process=4, process_gb=2.0, machines=1, **startup)
        nodes = (Node(2, memory_gb=4.0),) * 3
        model = counting(constant(50.0, 10_000.0), nodes=nodes)
        self.flow = Fidelity(
            model,
            STORM,
            Limits(0, False, 0.0),
            model.begin({"count": 1}),
            Containers(its, nodes),
            seed=1,
            failures=failures,
        )
        self.fleet: Fleet = SimulatedFleet(self.flow)
        self._now_s = 0.0

    def wait(self, seconds: float) -> None:
        self._now_s += seconds
        self.flow.advance(self._now_s)


class Slow:
    """Executors and hosts of an engine that take their time: 5 s and 1 s; a thread takes 0.1 s, handing over takes nothing."""

    most = 3

    def __init__(self) -> None:
        self.now_s = 0.0
        self._executors: dict[str, float] = {"1": 0.0}
        self._hosts: dict[int, tuple[float, str]] = {}
        self._seats = (4, 0.0)
        self._seated = 4

    # As the machines.

    def look(self) -> MachineFacts:
        names = tuple(name for name, ready_s in self._executors.items() if ready_s <= self.now_s)
        return MachineFacts(names, 2 * len(names), 2)

    def ask(self, total: int) -> None:
        while len(self._executors) < total:
            self._executors[str(max(map(int, self._executors)) + 1)] = self.now_s + 5.0

    def give_back(self, names: tuple[str, ...], total: int) -> None:
        for name in names:
            del self._executors[name]

    # As the hosts.

    def there(self) -> list[HostFact]:
        return [HostFact(n, on, False) for n, (ready_s, on) in self._hosts.items() if ready_s <= self.now_s]

    def keep(self, host: int) -> None:
        taken = [on for _, on in self._hosts.values()]
        self._hosts[host] = self.now_s + 1.0, min(self.look().names, key=taken.count)

    def retire(self, host: int) -> None:
        del self._hosts[host]

    def seat(self, seats: int) -> None:
        self._seats = seats, self.now_s + 0.1

    def seats(self) -> int:
        if self._seats[1] <= self.now_s:
            self._seated = self._seats[0]
        return self._seated


class EngineDriver:
    """The engine's fleet on such containers; one of the three executors runs, with one of its two hosts."""

    levels = tuple(Level)

    def __init__(self) -> None:
        self._slow = Slow()
        self._fleet = EngineFleet(self._slow, self._slow, lambda: self._slow.now_s, seats=8)
        self.fleet: Fleet = self._fleet
        self._fleet.set(Level.SEAT, 4)
        self._fleet.set(Level.HOST, 1)
        self.wait(2.0)

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.1)):
            self._slow.now_s += 0.1
            self._fleet.step()


@pytest.fixture(params=[SimulatedDriver, EngineDriver])
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    yield request.param()


def of(driver: Driver, level: Level) -> LevelState:
    return next(state for state in driver.fleet.look() if state.level is level)


def await_there(driver: Driver, level: Level, count: int, seconds: float = 30.0) -> None:
    for _ in range(int(seconds / 0.1)):
        if of(driver, level).there == count:
            return
        driver.wait(0.1)
    raise AssertionError(f"expected {level.count(count)}, got {of(driver, level)}")


def test_all_levels_are_told_from_the_cheapest_to_the_dearest(driver: Driver) -> None:
    states = driver.fleet.look()
    assert [state.level for state in states] == [Level.SEAT, Level.HOST, Level.EXECUTOR]
    for state in states:
        assert 1 <= state.there == state.asked == state.planned <= state.most
        assert not state.problem


@pytest.mark.parametrize("level", list(Level))
def test_what_is_asked_for_is_planned_at_once_and_there_later(driver: Driver, level: Level) -> None:
    if level not in driver.levels:
        pytest.skip("this fleet has a fixed number of them")
    before = of(driver, level)
    driver.fleet.grow(level, 1)
    after = of(driver, level)
    assert (after.planned, after.asked, after.there) == (before.planned + 1, before.planned + 1, before.there)
    await_there(driver, level, before.there + 1)
    came = of(driver, level)
    assert came.measured == before.measured + 1 and 0 < came.start_s < 15.0


@pytest.mark.parametrize("level", list(Level))
def test_fewer_are_planned_at_once_and_go_when_they_have_handed_over(driver: Driver, level: Level) -> None:
    if level not in driver.levels:
        pytest.skip("this fleet has a fixed number of them")
    before = of(driver, level)
    driver.fleet.grow(level, 1)
    await_there(driver, level, before.there + 1)
    driver.fleet.shrink(level, 1)
    assert of(driver, level).planned == before.planned
    await_there(driver, level, before.there)


def test_the_last_of_a_level_stays(driver: Driver) -> None:
    driver.fleet.shrink(Level.HOST, 100)
    driver.wait(1.0)
    assert of(driver, Level.HOST).planned == of(driver, Level.HOST).there == 1


# -- what only the simulated cluster can be made to do


def test_a_cluster_that_refuses_is_asked_again_then_reported_and_may_still_give_later() -> None:
    driver = SimulatedDriver(grants=2)
    driver.fleet.grow(Level.EXECUTOR, 2)
    for _ in range(200):
        driver.wait(0.5)
        driver.fleet.look()
    state = of(driver, Level.EXECUTOR)
    assert (state.there, state.asked, state.planned) == (2, 3, 3)
    assert state.problem.startswith("3 executors asked for")
    assert "2 there; look whether the cluster has room" in state.problem
    driver.fleet.shrink(Level.EXECUTOR, 1)
    assert of(driver, Level.EXECUTOR).problem == ""


def test_a_machine_that_dies_while_it_is_added_is_replaced_by_another() -> None:
    driver = SimulatedDriver(failures=(Failure("machine", 1, 2.0, 10_000.0),))
    driver.fleet.grow(Level.EXECUTOR, 1)
    driver.wait(6.0)
    assert of(driver, Level.EXECUTOR).there == 1, "it died after 2 s, and would have come after 5"
    await_there(driver, Level.EXECUTOR, 2)
    assert driver.flow.moving.node_up.tolist() == [True, False, True]


def test_one_that_comes_back_after_it_was_replaced_is_given_back() -> None:
    driver = SimulatedDriver(failures=(Failure("machine", 1, 2.0, 40.0),))
    driver.fleet.grow(Level.EXECUTOR, 1)
    driver.wait(60.0)
    driver.fleet.look()
    await_there(driver, Level.EXECUTOR, 2)
    assert of(driver, Level.EXECUTOR).planned == 2


def test_several_machines_are_given_back_at_once() -> None:
    driver = SimulatedDriver()
    driver.fleet.grow(Level.EXECUTOR, 2)
    await_there(driver, Level.EXECUTOR, 3)
    driver.fleet.shrink(Level.EXECUTOR, 2)
    await_there(driver, Level.EXECUTOR, 1)
    assert driver.flow.moving.node_up.tolist() == [True, False, False], "the last that came went first"


def test_hosts_go_to_machines_that_are_there_and_no_more_than_fit_into_the_memory() -> None:
    driver = SimulatedDriver()
    driver.fleet.grow(Level.HOST, 5)
    driver.wait(60.0)
    assert of(driver, Level.HOST).there == 2, "one machine has 4 GB, a process 2"
    driver.fleet.grow(Level.EXECUTOR, 2)
    for _ in range(40):
        driver.wait(1.0)
        driver.fleet.look()
    assert of(driver, Level.HOST).there == 6


def test_a_machine_hands_lanes_and_their_state_over_before_it_goes() -> None:
    driver = SimulatedDriver()
    flow = driver.flow
    driver.fleet.grow(Level.EXECUTOR, 1)
    driver.fleet.grow(Level.HOST, 1)
    await_there(driver, Level.HOST, 2)
    flow.moving.asked[0] = 2
    flow.start(1)
    flow.groups.resize(0)
    driver.wait(20.0)
    assert flow.moving.node[:2].tolist() == [0, 1]
    served = int(flow.moving.processed[1])
    assert served > 100
    driver.fleet.shrink(Level.HOST, 1)
    driver.fleet.shrink(Level.EXECUTOR, 1)
    assert of(driver, Level.EXECUTOR).there == 2, "it has not handed over yet"
    await_there(driver, Level.EXECUTOR, 1)
    assert flow.moving.node[:2].tolist() == [0, 0]
    assert [moved.keys for moved in flow.groups.told() if moved.between_hosts][-1] > 100, "the state went with it"
    driver.wait(10.0)
    moving = flow.moving
    assert int(moving.entered.sum()) == int(moving.finished.sum()) + int(moving.queued.sum())
    assert int(moving.dropped.sum()) == 0
    assert int(moving.processed[1]) > served
