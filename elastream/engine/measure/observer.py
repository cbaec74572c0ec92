"""The observer of a run: adds up published ticks and makes observations of them. It changes nothing."""

import threading
from collections.abc import Callable
from dataclasses import replace

from elastream.control import Observation
from elastream.engine.clock import Clock
from elastream.engine.driver.status import Publication, RunStatus
from elastream.engine.measure.totals import Measurements, Surroundings
from elastream.topology import Graph


class RunObserver:
    """`take` and `end_interval` are called by one thread; `over` may be called by any."""

    def __init__(
        self,
        graph: Graph,
        queue_limit: int | None,
        clock: Clock,
        status: RunStatus,
        surroundings: Callable[[], Surroundings],
    ) -> None:
        """`surroundings` asks Spark; it is called with every observation."""
        self._measurements = Measurements(graph, queue_limit)
        self._clock = clock
        self._surroundings = surroundings
        self._lock = threading.Lock()
        self.status = status
        """As of the last publication that was taken."""
        self._last_move = 0
        self._redirected_s = 0.0

    def take(self, publication: Publication) -> None:
        """Add up the ticks of a publication."""
        with self._lock:
            for tick in publication.ticks:
                self._measurements.add(tick)
            self.status = publication.status

    def over(self, seconds: float) -> Observation:
        """The last `seconds`."""
        surroundings = self._surroundings()
        with self._lock:
            return self._measurements.over(seconds, self.status, surroundings, self._clock.wall_s())

    def end_interval(self) -> Observation:
        """Everything since the last call."""
        surroundings = self._surroundings()
        with self._lock:
            observation = self._measurements.interval(self.status, surroundings, self._clock.wall_s())
        moves = tuple(moved for moved in self.status.state_moves if moved.number > self._last_move)
        if moves:
            observation, self._last_move = replace(observation, state_moves=moves), moves[-1].number
        redirections = tuple(one for one in self.status.redirections if one.at_s > self._redirected_s)
        if redirections:
            observation, self._redirected_s = replace(observation, redirections=redirections), redirections[-1].at_s
        return observation
