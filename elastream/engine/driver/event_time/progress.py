"""Progress of event time through a graph: what each operator may still send, given what waits in front of it.

Each class has a `value` in seconds: rows that leave from now on happened no earlier, apart from the lateness of their source.
Infinity means that nothing that leaves holds back a watermark; minus infinity means that nothing is known. A value may go down
when a silent input sends again. A value that goes up passes an operator behind the rows that waited before it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from elastream.lanes.queues import LaneQueue
from elastream.lanes.state import LedgerState

INFINITY = math.inf


class Progress(Protocol):
    """One step on the way of event times, in the tick's thread."""

    value: float

    def advance(self, now: float, wall_s: float) -> None:
        """Bring `value` up to date. Steps before this one have been advanced."""
        ...


Stops = tuple[tuple[LaneQueue, int], ...]
"""Lanes with rows, and how many rows each has consumed when those are served."""


class LaneStops:
    """The rows that wait in the lanes of an operator now. Barriers of one operator share it: it looks once per turn."""

    def __init__(self, state: LedgerState, operator: str) -> None:
        self._state = state
        self._operator = operator
        self._stops: Stops | None = None

    def new_turn(self) -> None:
        self._stops = None

    def now(self) -> Stops:
        if self._stops is None:
            lanes = self._state.lanes_of(self._operator) if self._state.queued(self._operator) else {}
            self._stops = tuple((queue, queue.appended) for queue in lanes.values() if queue.slices)
        return self._stops


class Barrier:
    """A value that rises only after all rows have been served that waited in an operator's lanes when it was offered."""

    def __init__(self, lanes: LaneStops) -> None:
        self._lanes = lanes
        self._coming: float | None = None
        self._stops: Stops = ()
        self._passed = 0
        """How many of the stops have been reached."""
        self.value = -INFINITY

    def offer(self, value: float) -> None:
        """Take the newest input value."""
        if self._coming is not None:
            # Rows behind the stops are no older than the newest value, which may have gone down.
            self._coming = min(self._coming, value)
            if self._served():
                self.value, self._coming = self._coming, None
        if value < self.value:
            self.value = value
        elif value > self.value and self._coming is None:
            if self._lanes.now():
                self._coming = value
                self._stop_here()
            else:
                self.value = value

    def rows_moved(self) -> None:
        """Rows have moved between the lanes of the operator: wait for all that are there now."""
        if self._coming is not None:
            self._stop_here()

    def _stop_here(self) -> None:
        self._stops, self._passed = self._lanes.now(), 0

    def _served(self) -> bool:
        while self._passed < len(self._stops):
            queue, stop = self._stops[self._passed]
            if queue.consumed < stop:
                return False
            self._passed += 1
        return True


class Passing:
    """An operator that passes event times on, or a chained one, which has no lanes and so no delay."""

    def __init__(
        self, inputs: Iterable[Progress], barrier: Barrier | None, bound: Callable[[], float] | None = None
    ) -> None:
        """`bound`: what timers of the operator may still give."""
        self._inputs = tuple(inputs)
        self.barrier = barrier
        self._bound = bound
        self.value = -INFINITY

    def advance(self, now: float, wall_s: float) -> None:
        value = least(self._inputs)
        if self.barrier is not None:
            self.barrier.offer(value)
            value = self.barrier.value
        self.value = value if self._bound is None else min(value, self._bound())


class Made:
    """An operator that makes a time column itself: the newest time that it gave, when all is served that was there before.

    Where lanes keep origins apart, it is the least of theirs.
    """

    def __init__(self, clock: Progress, idle_s: float, timers: Progress | None, origins: Iterable[str] = ("",)) -> None:
        """`clock`: when the rows entered that the operator has served. `timers`: what timers up to it may still give.

        `origins` are expected from the beginning; the name of a source alone stands for its parts until one is known.
        """
        self._clock = clock
        self._awaited = tuple(origins)
        self._timers = timers
        self._idle_s = idle_s
        self._origins: dict[str, _Origin] = {}
        self.value = -INFINITY

    def expect(self, origin: str, now: float) -> None:
        """Rows of an origin are on their way: until they have come, nothing is known."""
        if origin not in self._origins:
            self._origins[origin] = _Origin(now)
            for whole in ("", origin.partition("/")[0] + "/"):
                if whole != origin and whole in self._origins and self._origins[whole].newest_s == -INFINITY:
                    del self._origins[whole]

    def hear(self, origin: str, at_s: float, now: float) -> None:
        self.expect(origin, now)
        known = self._origins[origin]
        known.newest_s, known.heard_s = max(known.newest_s, at_s), now

    def advance(self, now: float, wall_s: float) -> None:
        if self._awaited:
            for name in self._awaited:
                self.expect(name, now)
            self._awaited = ()
        served_s, value = self._clock.value, INFINITY
        for origin in self._origins.values():
            if origin.coming is not None and served_s >= origin.coming[0]:
                origin.released_s, origin.coming = origin.coming[1], None
            if origin.coming is None and origin.newest_s > origin.released_s:
                if served_s >= now:
                    origin.released_s = origin.newest_s
                else:
                    origin.coming = now, origin.newest_s
            # Idle by the progress of the input: all was served that entered for so long, and nothing came of it.
            if origin.released_s < value and served_s - origin.heard_s <= self._idle_s:
                value = origin.released_s
        self.value = value if self._timers is None else min(value, self._timers.value)


@dataclass
class _Origin:
    heard_s: float
    """Monotonic time of its last row, or of when it was first expected."""
    newest_s: float = -INFINITY
    """Event time."""
    released_s: float = -INFINITY
    """The newest event time when all rows that had entered until then were served."""
    coming: tuple[float, float] | None = None
    """When all rows will be served that entered by a monotonic time, the next event time to be released."""


def least(inputs: Iterable[Progress]) -> float:
    return min((one.value for one in inputs), default=INFINITY)
