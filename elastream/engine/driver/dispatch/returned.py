"""Works that come back: done, with a receipt, or lost with their host."""

from elastream.engine.driver.dispatch.lane_schedule import LaneSchedule
from elastream.engine.driver.dispatch.replays import Replays
from elastream.engine.driver.dispatch.works import UnderWay, WorkTable
from elastream.engine.driver.event_time.timers import LaneTimers
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.topology import Graph, Kind


class ReturnedWorks:
    """Frees the lanes of works that came back. In the driver's thread only."""

    def __init__(
        self,
        graph: Graph,
        state: LedgerState,
        works: WorkTable,
        schedule: LaneSchedule,
        replays: Replays,
        timers: LaneTimers,
    ) -> None:
        self._state = state
        self._works = works
        self._schedule = schedule
        self._replays = replays
        self._timers = timers
        self._to_sinks = frozenset(o.name for o in graph.served if graph.chain(o.name)[-1].kind is Kind.SINK)

    def done(self, work: int, now: float) -> UnderWay | None:
        """A receipt has come and is applied: the lanes are free. None if the work is not known."""
        known = self._works.remove(work)
        if known is not None:
            for lane, rows in known.lanes.items():
                if known.task is None:
                    self._served(lane, rows)
                self._schedule.add(lane, now)
            self._works.free_hosts()
            if known.source is not None:
                self._replays.done(known.source)
        return known

    def lost(self, work: int, now: float) -> UnderWay | None:
        """The host of a work is gone: its tuples are in their lanes again, and suspected of having ended it."""
        known = self._works.remove(work)
        if known is None:
            return None
        if known.source is not None:
            self._replays.lost(known.source)
        for lane, rows in known.lanes.items():
            if known.task is None:
                self._works.suspects.host_died(
                    lane,
                    self._state.queue(lane).consumed,
                    rows,
                    alone=known.alone,
                    whole=lane.operator in self._to_sinks,
                    wakes=bool(self._timers.groups_of(lane)),
                )
            self._schedule.add(lane, now)
        return known

    def _served(self, lane: LaneId, rows: int) -> None:
        """A work of a lane is done, whatever was suspected of it."""
        suspects = self._works.suspects
        keys = None if rows else suspects.keys_of(lane)
        if keys is None:
            suspects.served(lane, self._state.queue(lane).consumed)
            return
        suspects.woken(lane, left=self._timers.is_due(lane, keys.clock_s, keys.watermark_s))
        # It may have got key groups meanwhile, which were not looked at.
        self._timers.ask(lane)
