"""Publishing the status of a run: the driver makes it now and then, and hands it to whoever watches or decides."""

from collections.abc import Callable
from typing import Protocol

from elastream.engine.clock import Clock
from elastream.engine.driver.ports import Tick
from elastream.engine.driver.status import Publication, RunStatus

PUBLISH_S = 0.05
"""Between two publications, unless something has changed that others should see at once."""


class StatusSource(Protocol):
    """Makes statuses."""

    def make(self) -> RunStatus: ...

    def is_stale(self, status: RunStatus) -> bool:
        """True if something has changed that others should see at once."""
        ...


class Publisher:
    """Publishes the status and the ticks, at most every `PUBLISH_S`. `latest` may be read by any thread."""

    def __init__(
        self,
        maker: StatusSource,
        clock: Clock,
        deliver: Callable[[Publication], object],
        due_s: Callable[[], float],
    ) -> None:
        """`deliver` takes a publication and returns at once. `due_s`: wall time at which the control loop wants the next."""
        self._maker = maker
        self._clock = clock
        self._deliver = deliver
        self._due_s = due_s
        self._ticks: list[Tick] = []
        self._published_s = clock.now()
        self.latest = maker.make()
        """The newest status."""

    def after_tick(self, tick: Tick | None) -> None:
        """Take the tick that was committed, if one was, and publish if it is time to."""
        if tick is not None:
            self._ticks.append(tick)
        if (
            self._clock.now() - self._published_s >= PUBLISH_S
            # Once per due time: a control loop that is late does not make the driver publish in every tick.
            or self.latest.at_s < self._due_s() <= self._clock.wall_s()
            or self._maker.is_stale(self.latest)
        ):
            self.publish()

    def publish(self) -> None:
        ticks, self._ticks = tuple(self._ticks), []
        self._published_s = self._clock.now()
        self.latest = self._maker.make()
        self._deliver(Publication(self.latest, ticks))
