"""A simulated driver: a process with a clock and hosts of its own."""

from collections.abc import Callable

from elastream.engine.handle import Run
from elastream.testing.simulation.cluster import SimulatedHosts
from elastream.testing.simulation.scheduler import Process, Scheduler


class SimulatedClock:
    """A driver's clock: steady, with the wall time of the moment when the driver began."""

    def __init__(self, scheduler: Scheduler, offset_s: float, cpu_share: float) -> None:
        self._scheduler = scheduler
        self._offset_s = offset_s
        self._cpu_share = cpu_share

    def now(self) -> float:
        return self._scheduler.now

    def wall_s(self) -> float:
        return self._scheduler.now + self._offset_s

    def cpu_s(self) -> float:
        return self._scheduler.now * self._cpu_share

    def sleep(self, seconds: float) -> None:
        self._scheduler.pause(max(seconds, 1e-5))


class Driver(Process):
    """One driver: from the lease to its end."""

    def __init__(self, scheduler: Scheduler, name: str, hosts: Callable[["Driver"], SimulatedHosts]) -> None:
        super().__init__(scheduler, name)
        self.hosts = hosts(self)
        self.run: Run | None = None
        self.stopping = False
        self.failures_before = 0

    def kill(self) -> None:
        super().kill()
        self.hosts.close()
