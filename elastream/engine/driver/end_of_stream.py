"""When a run is over: sources are exhausted, no tuple is queued, no work is under way, and no key waits for its time."""

from elastream.engine.driver.dispatch.replays import Replays
from elastream.engine.driver.dispatch.works import WorkTable
from elastream.engine.driver.event_time.timers import LaneTimers
from elastream.engine.driver.ports import Edges
from elastream.lanes.state import LedgerState


class EndOfStream:
    """In the driver's thread only."""

    def __init__(
        self, state: LedgerState, works: WorkTable, replays: Replays, timers: LaneTimers, edges: Edges | None
    ) -> None:
        self._state = state
        self._works = works
        self._replays = replays
        self._timers = timers
        self._edges = edges

    def is_reached(self) -> bool:
        stopped, edges = self._replays.stopped, self._edges
        if self._works or not (stopped or self._replays.exhausted()):
            return False
        if edges is not None and not (edges.is_idle() if stopped else edges.is_drained()):
            return False
        if any(self._state.queued(name) for name in self._state.sizes if name not in self._state.outputs):
            return False
        # A drain is no end of the stream: windows stay open for the tuples that the next run reads.
        return stopped or self._timers.end()
