"""Works for lanes that are due, as far as hosts have threads and the lanes behind them have room."""

from elastream import rules
from elastream.engine.driver.commit.estimates import Estimates
from elastream.engine.driver.dispatch.lane_schedule import LaneSchedule
from elastream.engine.driver.dispatch.lane_works import LaneWorks
from elastream.engine.driver.dispatch.works import Dispatch, Moment, UnderWay, WorkTable
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.driver.placement.hosts import HostRecord
from elastream.engine.driver.placement.state_keeper import StateKeeper
from elastream.lanes.segments import LaneId


class LaneDispatch:
    """In the driver's thread only."""

    def __init__(
        self,
        homes: LaneHomes,
        keeper: StateKeeper,
        estimates: Estimates,
        works: WorkTable,
        schedule: LaneSchedule,
        maker: LaneWorks,
    ) -> None:
        self._homes = homes
        self._keeper = keeper
        self._estimates = estimates
        self._works = works
        self._schedule = schedule
        self._maker = maker

    def add(self, dispatch: Dispatch, ready: list[LaneId], woken: frozenset[LaneId], moment: Moment) -> None:
        """Add works for lanes that are `ready`. Those that are `woken` have keys to be woken, and get a work also without tuples."""
        shared: dict[tuple[str, int], tuple[HostRecord, list[LaneId]]] = {}
        for lane in ready:
            is_busy = self._works.is_busy(lane)
            # A lane whose state is being restored or written is served afterwards.
            rows = 0 if lane in self._works.discarding or is_busy else self._maker.rows(lane, moment.budget_s)
            if not rows and (lane not in woken or is_busy):
                self._put_back(lane, is_busy)
                continue
            computes, alone = self._estimates.computes(lane.operator), lane in self._works.suspects
            record = self._host(lane, computes, alone)
            if record is None:
                self._schedule.starve([lane])
                continue
            if self._shares(lane, rows, computes=computes, alone=alone):
                _, lanes = shared.setdefault((lane.operator, record.host), (record, []))
                lanes.append(lane)
                if len(lanes) == 1:
                    # The work counts from now on, so that others see the thread taken.
                    record.computing += 1
                elif len(lanes) >= rules.MOST_SHARED:
                    self._send_shared(dispatch, *shared.pop((lane.operator, record.host)), moment)
                continue
            self._send(dispatch, {lane: rows}, record, moment, computes=computes, alone=alone)
        for record, lanes in shared.values():
            self._send_shared(dispatch, record, lanes, moment)

    def _put_back(self, lane: LaneId, is_busy: bool) -> None:
        """A lane cannot be served now. One that was emptied meanwhile comes back when it is filled again."""
        if not self._schedule.has_tuples(lane):
            return
        self._schedule.starve([lane])
        if lane in self._works.suspects and not is_busy:
            # Lanes behind it have no room, and may need the very host that is kept free for it.
            self._homes.release_isolated()

    def _host(self, lane: LaneId, computes: bool, alone: bool) -> HostRecord | None:
        """The host that serves a lane now; None while none can."""
        if not self._homes.is_stateful(lane):
            return self._homes.isolated_host() if alone else self._homes.host_for(lane, computes)
        if not self._keeper.prepare(lane):
            return None
        return self._homes.isolated_home(lane) if alone else self._homes.stateful_host_for(lane, computes)

    def _shares(self, lane: LaneId, rows: int, *, computes: bool, alone: bool) -> bool:
        """True if a lane has so little to do that it shares a work with others."""
        if not computes or alone or self._works.headroom.bounded:
            return False
        return rules.shares_work(rows, self._estimates.of(lane.operator))

    def _send_shared(self, dispatch: Dispatch, record: HostRecord, lanes: list[LaneId], moment: Moment) -> None:
        record.computing -= 1
        rows_of = {lane: self._maker.rows(lane, moment.budget_s) for lane in lanes}
        self._send(dispatch, rows_of, record, moment, computes=True, alone=False)

    def _send(
        self,
        dispatch: Dispatch,
        rows_of: dict[LaneId, int],
        record: HostRecord,
        moment: Moment,
        *,
        computes: bool,
        alone: bool,
    ) -> None:
        """One work for some lanes of one operator, to a host that has a thread for it."""
        work = self._maker.make(rows_of, dispatch, moment, computes=computes, alone=alone)
        self._works.headroom.reserve(work.id, work.operator, sum(rows_of.values()))
        self._schedule.sent(rows_of, moment.now)
        self._works.add(UnderWay(work.id, record.host, work.operator, rows_of, moment.now, computes, alone), record)
        dispatch.add(record.host, work)
