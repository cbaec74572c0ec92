"""What each fault does to a world."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from elastream.control import Move
from elastream.engine.driver.lifecycle import Phase
from elastream.engine.driver.requests import Discard, PlaceLanes, SetLevel
from elastream.fleet import Level
from elastream.testing.simulation.cluster import UNNOTICED_S, Connection
from elastream.testing.simulation.driver import Driver
from elastream.testing.simulation.faults import CRASH_POINTS, Fault
from elastream.testing.simulation.workload import draw_limits
from elastream.topology.groupings import KEY_GROUPS

if TYPE_CHECKING:
    from elastream.testing.simulation.world import World

T = TypeVar("T")

KEYED = ("count", "timer", "window")

Action = Callable[["World", Driver, Fault], None]


def act(world: "World", fault: Fault) -> None:
    """Let a fault happen, if there is something for it to happen to."""
    driver = world.driver
    if driver is None:
        return
    world.record("fault", str(fault))
    ACTIONS[fault.kind](world, driver, fault)


def _pick(items: Sequence[T], fraction: float) -> T | None:
    return items[int(fraction * len(items))] if items else None


def _connection(driver: Driver, fraction: float) -> Connection | None:
    return _pick([driver.hosts.live[number] for number in sorted(driver.hosts.live)], fraction)


def _length_s(fraction: float) -> float:
    """Mostly short, now and then longer than any timeout."""
    return float(0.02 * 1000.0**fraction)


# -- hosts


def _kill_host(world: "World", driver: Driver, fault: Fault) -> None:
    if (connection := _connection(driver, fault.a)) is not None:
        driver.hosts.died(connection)


def _vanish_host(world: "World", driver: Driver, fault: Fault) -> None:
    if (connection := _connection(driver, fault.a)) is not None:
        driver.hosts.died(connection, fault.b * UNNOTICED_S)


def _pause_host(world: "World", driver: Driver, fault: Fault) -> None:
    if (connection := _connection(driver, fault.a)) is not None:
        seconds = _length_s(fault.b)
        connection.host.pause(seconds)
        # Its kernel goes on and answers for it, but its messages stay unread.
        connection.held_until_s["to host"] = world.scheduler.now + seconds


def _drop_connection(world: "World", driver: Driver, fault: Fault) -> None:
    if (connection := _connection(driver, fault.a)) is not None:
        driver.hosts.drop(connection.host.number, _length_s(fault.b) if fault.c < 0.5 else 0.0)


def _hold(direction: str) -> Action:
    def hold(world: "World", driver: Driver, fault: Fault) -> None:
        connection = _connection(driver, fault.a)
        if connection is not None:
            seconds = _length_s(fault.b)
            connection.held_until_s[direction] = world.scheduler.now + min(seconds, UNNOTICED_S)
            if seconds > UNNOTICED_S:
                world.scheduler.after(UNNOTICED_S, lambda: driver.hosts.reset(connection))

    return hold


def _repeat_receipts(world: "World", driver: Driver, fault: Fault) -> None:
    driver.hosts.duplicates = fault.a


# -- drivers


def _crash_driver(world: "World", driver: Driver, fault: Fault) -> None:
    world.weather.crash_point = _pick(CRASH_POINTS, fault.a)
    world.weather.victim = driver


def _pause_driver(world: "World", driver: Driver, fault: Fault) -> None:
    driver.pause(_length_s(fault.a))


def _start_rival(world: "World", driver: Driver, fault: Fault) -> None:
    if fault.a < 0.5:
        driver.pause(_length_s(0.5 + fault.b / 2))
    world.start_driver()


def _stop_driver(world: "World", driver: Driver, fault: Fault) -> None:
    """It stops as asked, and goes on with other limits."""
    if driver.run is not None and driver.run.life.phase is Phase.RUNNING:
        driver.stopping = True
        driver.run.life.stop()
        if fault.a < 0.7:
            limits = draw_limits(world.chance, world.workload.scalable)
            world.change(replace(world.workload, limits=limits))


# -- storage and clocks


def _slow_storage(world: "World", driver: Driver, fault: Fault) -> None:
    world.weather.slow_until_s = world.scheduler.now + _length_s(fault.a)
    world.weather.slow = 3.0 + 100.0 * fault.b


def _fail_storage(world: "World", driver: Driver, fault: Fault) -> None:
    world.weather.failing.append(_pick(("change", "change", "read", "delete", "list", "open"), fault.a) or "")


def _fill_disk(world: "World", driver: Driver, fault: Fault) -> None:
    world.weather.full_until_s = world.scheduler.now + _length_s(fault.a) / 4


def _step_clock(world: "World", driver: Driver, fault: Fault) -> None:
    world.wall_offset_s += (fault.a - 0.5) * 60.0


# -- decisions


def _running(driver: Driver) -> bool:
    return driver.run is not None and driver.run.life.phase is Phase.RUNNING


def _some_operator(world: "World", fraction: float) -> str | None:
    """More often one that remembers something: most of what can go wrong is there."""
    names = world.workload.scalable
    return _pick([*names, *[name for name in names if name in KEYED] * 3], fraction)


def _rescale(world: "World", driver: Driver, fault: Fault) -> None:
    name = _some_operator(world, fault.a)
    if name is not None and driver.run is not None and _running(driver):
        least, most = world.workload.limits[name]
        driver.run.life.resize(name, least + int(fault.b * (most - least + 1)), "a fault")


def _set_level(level: Level, most: int) -> Action:
    def set_level(world: "World", driver: Driver, fault: Fault) -> None:
        run = driver.run
        if run is not None and _running(driver):
            run.life.post(SetLevel(level, 1 + int(fault.a * most)))

    return set_level


def _move_groups(world: "World", driver: Driver, fault: Fault) -> None:
    run = driver.run
    if run is None or not _running(driver):
        return
    names = [name for name in world.workload.scalable if name in run.base.state.owners]
    name = _pick(names, fault.a)
    if name is None:
        return

    def move() -> None:
        size, owners = run.base.state.sizes[name], list(run.base.state.owners[name])
        if run.driver.tables.groups.is_targeted(name):
            return
        for group in range(int(fault.b * KEY_GROUPS), KEY_GROUPS, 3):
            owners[group] = int(fault.c * size)
        clock = run.life
        run.driver.mover.redirect(name, owners, clock.now(), clock.wall_s())

    run.life.post(move)


def _pin_lane(world: "World", driver: Driver, fault: Fault) -> None:
    run = driver.run
    if run is None or not _running(driver):
        return
    name, host = _some_operator(world, fault.a), _pick(sorted(driver.hosts.live), fault.b)
    if name is not None and host is not None:
        lane = int(fault.c * run.base.state.sizes[name])
        run.life.post(PlaceLanes((Move(name, lane, 0, host, "simulated"),)))


def _discard(world: "World", driver: Driver, fault: Fault) -> None:
    run = driver.run
    # What operators remember would no longer be a recount of what they consumed.
    name = _pick([name for name in world.workload.scalable if name.startswith(("op", "behind"))], fault.a)
    if run is not None and name is not None and _running(driver) and not world.workload.exact:
        run.life.post(Discard((name,)))


ACTIONS: dict[str, Action] = {
    "kill host": _kill_host,
    "vanish host": _vanish_host,
    "pause host": _pause_host,
    "drop connection": _drop_connection,
    "hold messages to host": _hold("to host"),
    "hold messages to driver": _hold("to driver"),
    "repeat receipts": _repeat_receipts,
    "crash driver": _crash_driver,
    "pause driver": _pause_driver,
    "start rival driver": _start_rival,
    "stop driver": _stop_driver,
    "slow storage": _slow_storage,
    "fail storage": _fail_storage,
    "fill disk": _fill_disk,
    "step clock": _step_clock,
    "rescale": _rescale,
    "set hosts": _set_level(Level.HOST, 4),
    "set seats": _set_level(Level.SEAT, 4),
    "move groups": _move_groups,
    "pin lane": _pin_lane,
    "discard": _discard,
}
