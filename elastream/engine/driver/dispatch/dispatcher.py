"""Which works hosts get next: those about states, then sources, then lanes that are due."""

import math

from elastream.engine.driver.dispatch.lane_dispatch import LaneDispatch
from elastream.engine.driver.dispatch.lane_schedule import LaneSchedule
from elastream.engine.driver.dispatch.source_works import SourceWorks
from elastream.engine.driver.dispatch.state_works import StateWorks
from elastream.engine.driver.dispatch.works import Dispatch, Moment, WorkTable
from elastream.engine.driver.event_time.timers import LaneTimers
from elastream.lanes.segments import LaneId


class Dispatcher:
    """Plans works; the tick sends them. In the driver's thread only."""

    def __init__(
        self,
        works: WorkTable,
        schedule: LaneSchedule,
        timers: LaneTimers,
        states: StateWorks,
        sources: SourceWorks,
        lanes: LaneDispatch,
    ) -> None:
        self._works = works
        self._schedule = schedule
        self._timers = timers
        self._states = states
        self._sources = sources
        self._lanes = lanes

    def dispatch(self, moment: Moment) -> Dispatch:
        """Works for states, sources and lanes that are due, as far as hosts have threads."""
        dispatch = Dispatch()
        self._schedule.starve_due(moment.now)
        woken = self._woken(moment.wall_s)
        self._schedule.starve(lane for lane in woken if not self._works.is_busy(lane))
        ready = self._schedule.take_starved()
        self._states.add(dispatch, moment)
        self._sources.add(dispatch, ready, moment)
        self._lanes.add(dispatch, ready, frozenset(woken), moment)
        return dispatch

    def next_s(self, now: float, wall_s: float) -> float:
        """When something will be due, by the monotonic clock, if nothing happens before; infinite if nothing will."""
        if not self._works.has_hosts:
            return math.inf
        timers_s = now + max(0.0, self._timers.next_s() - wall_s) if self._timers else math.inf
        return min(self._schedule.next_s(), timers_s, self._sources.next_s(now, wall_s))

    def _woken(self, wall_s: float) -> list[LaneId]:
        """Lanes with keys whose time has come."""
        woken, suspects = self._timers.due(wall_s) if self._timers else [], self._works.suspects
        if not suspects:
            return woken
        # Keys are woken once the tuples before them are not suspected any more, and then no tuple is served.
        return [*(lane for lane in woken if lane not in suspects), *suspects.wakes_only()]
