"""The world of one seed: drivers one after another, hosts, storage, faults, and the checks after every entry."""

import hashlib
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from elastream.engine.assemble import Plan, assemble
from elastream.engine.driver.run_base import RunBase
from elastream.engine.handle import RunHandle
from elastream.engine.worker.delivery import Delivery
from elastream.errors import BaseInUse, BaseUnusable, RunFailed
from elastream.fleet.machines import FixedMachines
from elastream.testing.simulation.actions import act
from elastream.testing.simulation.cluster import SimulatedHosts
from elastream.testing.simulation.constants import shrunk
from elastream.testing.simulation.driver import Driver, SimulatedClock
from elastream.testing.simulation.faults import Fault, StorageWeather
from elastream.testing.simulation.host import HostProcess, HostTiming
from elastream.testing.simulation.invariants import Invariants
from elastream.testing.simulation.model import Violation
from elastream.testing.simulation.scenario import Scenario
from elastream.testing.simulation.scheduler import Killed, Process, Scheduler
from elastream.testing.simulation.storage import Disk, SimulatedMachine, SimulatedStore
from elastream.testing.simulation.workload import ORIGIN_S, Workload, build
from elastream.topology import Graph

DRAIN_S = 200.0
"""After the last fault, something must be served within this long, until the run has come to its end."""

MOST_DRIVERS = 60
"""A run that needs more drivers than this makes no progress."""


@dataclass(frozen=True)
class Outcome:
    """What became of a seed."""

    scenario: Scenario
    violation: str | None
    digest: str
    """Of the history: equal for the same seed everywhere."""
    history: list[str]
    works: int
    entries: int
    drivers: int
    virtual_s: float


@dataclass
class World:
    """Runs one scenario."""

    scenario: Scenario
    scheduler: Scheduler = field(default_factory=Scheduler)
    drivers: list[Driver] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    wall_offset_s: float = float(ORIGIN_S)
    calm: bool = False
    """True when no fault comes any more."""
    finished: bool = False
    violation: str | None = None

    def __post_init__(self) -> None:
        scenario = self.scenario
        self.chance = random.Random(f"world {scenario.seed}")
        self.workload = scenario.workload
        self.weather = StorageWeather(self.chance, scenario.storage_s)
        self.disk = Disk(scenario.appends, self.weather, self.chance)
        self.invariants = Invariants(self.workload, self.disk, self.record)
        self.disk.on_change.append(self._file_changed)
        self.graph = self._build()
        self.rivals = 0

    # -- the run

    def play(self) -> Outcome:
        """From the first driver to the end, or to the first violation."""
        logger = logging.getLogger("elastream")
        handler, level, propagate = _Recording(self.record), logger.level, logger.propagate
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(logging.INFO)
        try:
            with shrunk(self.scenario.constants):
                self._play()
        finally:
            logger.removeHandler(handler)
            logger.propagate = propagate
            logger.setLevel(level)
            self._end()
        digest = hashlib.blake2b("\n".join(self.history).encode(), digest_size=8).hexdigest()
        return Outcome(
            self.scenario,
            self.violation,
            digest,
            self.history,
            sum(driver.run.driver.pace.works for driver in self.drivers if driver.run is not None),
            self.invariants.entries,
            len(self.drivers),
            self.scheduler.now,
        )

    def _play(self) -> None:
        scheduler = self.scheduler
        for fault in self.scenario.faults:
            scheduler.after(fault.at_s, lambda fault=fault: self._strike(fault))  # type: ignore[misc]
        last_s = self.scenario.faults[-1].at_s if self.scenario.faults else 0.0
        scheduler.after(last_s + 1e-6, self._calm_down)
        scheduler.until_s = last_s + DRAIN_S
        self.start_driver()
        try:
            scheduler.over = lambda: self.finished or self.violation is not None
            self._run_while_served()
            if self.violation is None:
                if not self.finished:
                    raise Violation("stuck: nothing will ever happen")
                self.invariants.at_end()
                self._inspect()
        except Violation as violation:
            self.fail(str(violation))
        except Exception as error:
            self.fail(f"the simulation raised {type(error).__name__}: {error}")

    def _inspect(self) -> None:
        """All processes are gone: whoever opens the base once more finds nothing that is not needed."""
        for driver in self.drivers:
            # A rival may still wait to see whether the driver that has finished lives.
            driver.kill()
            for host in driver.hosts.processes:
                host.kill()
        self.weather.full_until_s = self.weather.slow_until_s = 0.0
        process = Process(self.scheduler, "inspector")

        def look() -> None:
            base = RunBase(
                SimulatedStore(self.disk, process, locked=False),
                SimulatedClock(self.scheduler, self.wall_offset_s, 0.0),
                SimulatedMachine(self.disk, process),
                "0" * 32,
            )
            with base.opening():
                pass
            base.close()

        process.spawn(look)
        self.scheduler.until_s = self.scheduler.now + DRAIN_S
        self.scheduler.over = lambda: not process.strands
        self.scheduler.run()
        self.invariants.no_file_left_over()

    def fail(self, what: str) -> None:
        if self.violation is None:
            self.violation = what
            self.record("violation", what)

    def record(self, who: str, what: str) -> None:
        self.history.append(f"{self.scheduler.now:.6f} {who}: {what}")

    # -- drivers

    @property
    def driver(self) -> Driver | None:
        """The newest that lives."""
        return next((driver for driver in reversed(self.drivers) if driver.alive), None)

    def start_driver(self) -> None:
        if len(self.drivers) >= MOST_DRIVERS:
            self.fail(f"stuck: {MOST_DRIVERS} drivers have not come to the end")
            return
        name = f"driver d{len(self.drivers) + 1}"
        driver = Driver(self.scheduler, name, self._hosts)
        driver.failures_before = self.weather.failures
        self.drivers.append(driver)
        self.record(name, "starts")
        driver.hosts.strand = driver.spawn(lambda: self._drive(driver))

    def start_driver_later(self) -> None:
        self.scheduler.after(self.chance.uniform(0.05, 1.0), self._start_if_none)

    def _start_if_none(self) -> None:
        if self.driver is None and not self.finished:
            self.start_driver()

    def _hosts(self, driver: Driver) -> SimulatedHosts:
        scenario, chance = self.scenario, self.chance
        timing = HostTiming(
            lambda: chance.expovariate(1.0) * scenario.step_s,
            lambda: chance.expovariate(1.0) * scenario.step_s,
            lambda: chance.random() < scenario.interleaved,
            scenario.cpu_share,
            self.wall_s,
        )
        return SimulatedHosts(
            self.scheduler,
            driver,
            self.disk,
            timing,
            chance,
            lambda: chance.expovariate(1.0) * scenario.latency_s,
            scenario.turn_s,
            self.record,
            self.weather.before_send,
        )

    def change(self, workload: Workload) -> None:
        """From the next driver on the graph has other limits."""
        self.workload = workload
        self.graph = self._build()

    def wall_s(self) -> float:
        return self.scheduler.now + self.wall_offset_s

    def _build(self) -> Graph:
        return build(self.workload, self._deliver, self.wall_s, self._die)

    def _drive(self, driver: Driver) -> None:
        error: BaseException | None = None
        ticks: list[Callable[[], None]] = []
        try:
            clock = SimulatedClock(self.scheduler, self.wall_offset_s, 0.2)
            hosts = driver.hosts
            handle = assemble(
                self.graph,
                SimulatedStore(self.disk, driver, locked=False),
                Plan(settings=self.workload.settings),
                hosts,
                hosts.start,
                RunHandle,
                machines=FixedMachines(lambda: self.scenario.hosts),
                slots=lambda: self.scenario.hosts,
                clock=clock,
                machine=SimulatedMachine(self.disk, driver),
                identity=hashlib.blake2b(driver.name.encode(), digest_size=16).hexdigest(),
                launch=ticks.append,
                inline=True,
            )
            run = driver.run = handle._run
            ticks[0]()
            error = run.life.error
            driver.check()
            hosts.close()
            run.base.close()
        except Killed:
            raise
        except Exception as raised:
            error = raised
        finally:
            if not driver.alive:
                self.record(driver.name, "is dead")
                self.start_driver_later()
        driver.alive = False
        self._driver_ended(driver, error)

    def _driver_ended(self, driver: Driver, error: BaseException | None) -> None:
        self.record(driver.name, f"ends: {'done' if error is None else f'{type(error).__name__}: {error}'}")
        if error is None and not driver.stopping:
            self.finished = True
            return
        excused = self.weather.failures > driver.failures_before
        if (
            error is None
            or (isinstance(error, BaseInUse) and len(self.drivers) > 1)
            or (excused and isinstance(error, BaseUnusable | RunFailed))
        ):
            self.start_driver_later()
            return
        self.fail(f"the run ended: {type(error).__name__}: {error}")

    # -- what is called from inside

    def _file_changed(self, process: Process, operation: str, name: str) -> None:
        try:
            driver = process if isinstance(process, Driver) else None
            run, hosts = (driver.run, driver.hosts) if driver is not None else (None, None)
            self.invariants.file_changed(operation, name, run, hosts)
        except Violation as violation:
            self.fail(str(violation))
            process.kill()
            process.check()

    def _deliver(self, batch: pa.RecordBatch, delivery: Delivery) -> None:
        self.scheduler.process.check()
        try:
            self.invariants.delivered(batch, delivery)
        except Violation as violation:
            self.fail(str(violation))

    def _die(self) -> None:
        """A tuple ends the process of the operator that serves it."""
        process = self.scheduler.process
        assert isinstance(process, HostProcess)
        self.record(process.name, "is ended by a tuple")
        for driver in self.drivers:
            for connection in list(driver.hosts.live.values()):
                if connection.host is process:
                    driver.hosts.died(connection)
        process.kill()
        process.check()

    # -- faults

    def _strike(self, fault: Fault) -> None:
        if not self.finished and self.violation is None:
            act(self, fault)

    def _calm_down(self) -> None:
        self.calm = True
        self.weather.crash_point = None
        self.weather.failing.clear()
        self.record("world", "no more faults")

    def _run_while_served(self) -> None:
        """Run to the end. A run may be slow, but within `DRAIN_S` something must be served."""
        scheduler, served = self.scheduler, -1
        while True:
            scheduler.run()
            if scheduler.now < scheduler.until_s:
                return
            before, served = served, self._served()
            if served == before:
                raise Violation(f"stuck: nothing was served in {DRAIN_S:.0f} s after the last fault; {self._stuck()}")
            scheduler.until_s = scheduler.now + DRAIN_S

    def _served(self) -> int:
        """Tuples that all operators have served so far."""
        driver = self.driver
        if driver is None or driver.run is None:
            return 0
        return sum(queue.consumed for queue in driver.run.base.state.lanes.values())

    def _stuck(self) -> str:
        driver = self.driver
        if driver is None or driver.run is None:
            return "no driver runs"
        run = driver.run
        queued = {name: run.base.state.queued(name) for name in run.base.state.sizes if run.base.state.queued(name)}
        works = [(work.id, work.operator, work.host) for work in run.driver.tables.works.all()]
        return f"{driver.name} {run.life.phase.value}; queued {queued}, under way {works}, hosts {[host.host for host in run.driver.tables.hosts]}"

    def _end(self) -> None:
        """Unwind every strand that is left, without further history."""
        self.record = lambda who, what: None  # type: ignore[method-assign]
        for driver in self.drivers:
            processes: list[Process] = [driver, *driver.hosts.processes]
            for process in processes:
                process.kill()
        self.finished, scheduler = True, self.scheduler
        scheduler.until_s = float("inf")
        scheduler.over = lambda: not any(p.strands for d in self.drivers for p in (d, *d.hosts.processes))
        scheduler.run()
        for driver in self.drivers:
            for host in driver.hosts.processes:
                host.free()
        self.scheduler.close()


class _Recording(logging.Handler):
    """What the engine logs is part of the history."""

    def __init__(self, record: Callable[[str, str], None]) -> None:
        super().__init__()
        self._record = record

    def emit(self, record: logging.LogRecord) -> None:
        self._record("log", record.getMessage())


def simulate(scenario: Scenario) -> Outcome:
    """Run one scenario."""
    return World(scenario).play()
