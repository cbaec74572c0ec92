"""The works of lanes: how many tuples each lane's next work has, and what its host is told.

Works of suspected lanes serve tuples or wake keys, never both. What a sink is given is noted as given, and is given again as it was.
"""

from elastream import rules
from elastream.engine.driver.commit.estimates import Estimates
from elastream.engine.driver.dispatch.routing_facts import RoutingFacts
from elastream.engine.driver.dispatch.suspects import TimerSuspect
from elastream.engine.driver.dispatch.works import Dispatch, Moment, WorkTable
from elastream.engine.driver.event_time.timers import LaneTimers
from elastream.engine.driver.placement.groups import GroupTable
from elastream.engine.messages import BuryTimer, BuryTuples, LaneRows, LaneWork, ServeWork, WakeWork
from elastream.lanes.entries import Given
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.settings import Settings
from elastream.topology import Graph, Kind

ENDED = "the process that served it ended, three times in a row: a crash in native code, os._exit, or more memory than there is"


class LaneWorks:
    """Makes works, for whichever host. Notes which keys are suspected. In the driver's thread only."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        state: LedgerState,
        estimates: Estimates,
        groups: GroupTable,
        timers: LaneTimers,
        facts: RoutingFacts,
        works: WorkTable,
    ) -> None:
        self._settings = settings
        self._state = state
        self._estimates = estimates
        self._groups = groups
        self._timers = timers
        self._facts = facts
        self._works = works
        self._suspects = works.suspects
        self._whole = frozenset(o.name for o in graph.served if graph.chain(o.name)[-1].kind is Kind.SINK)
        """Operators whose works are not cut: a sink must see the same rows again."""
        self._merging = frozenset(o.name for o in graph.served if o.keyed is not None and o.keyed.merge is not None)

    def rows(self, lane: LaneId, budget_s: float) -> int:
        """How many tuples of a lane to serve next; 0 when those behind it have no room."""
        if self._suspects.is_waking(lane):
            return 0
        given = self._state.given.get(lane)
        if given is not None:
            return given.rows
        queue, whole = self._state.queue(lane), lane.operator in self._whole
        first = rules.FIRST_DELIVERY if whole else rules.FIRST_TRY
        wanted = rules.quota(self._estimates.of(lane.operator), budget_s, first)
        rows = queue.portion(wanted, rules.MOST_BYTES)
        headroom = self._works.headroom
        if headroom.bounded:
            rows = min(rows, headroom.for_sender(lane.operator))
        suspect = self._suspects.get(lane)
        return rows if suspect is None else min(rows, suspect.rows)

    def make(
        self, rows_of: dict[LaneId, int], dispatch: Dispatch, moment: Moment, *, computes: bool, alone: bool
    ) -> LaneWork:
        """One work for some lanes of one operator; tuples that a sink is given by it are noted in the dispatch."""
        lane = next(iter(rows_of))
        if self._suspects.is_waking(lane):
            return self._wake(lane, moment.wall_s, computes=computes)
        given = self._give(rows_of, dispatch, moment.wall_s) if lane.operator in self._whole else None
        lanes = [self._lane_rows(lane, rows) for lane, rows in rows_of.items()]
        planned_s = given.planned_s if given else moment.wall_s
        if self._suspects.condemned(lane):
            return BuryTuples(self._works.next_id(), lane.operator, lanes[0], planned_s, ENDED)
        # What ends the process is a tuple, or a key that is woken: a suspected lane never does both in one work.
        return self._serve(lane.operator, lanes, planned_s, given, moment, computes=computes, wakes=not alone)

    def _serve(
        self,
        operator: str,
        lanes: list[LaneRows],
        planned_s: float,
        given: Given | None,
        moment: Moment,
        *,
        computes: bool,
        wakes: bool,
    ) -> ServeWork:
        service_s = self._estimates.of(operator)
        return ServeWork(
            self._works.next_id(),
            operator,
            lanes,
            planned_s,
            0.0 if operator in self._whole else moment.budget_s * rules.OVERRUN,
            1 if service_s < 0 else min(max(1, int(rules.CHUNK_S / max(service_s, 1e-9))), rules.MOST_ROWS),
            computes,
            self._works.next_turn(),
            given.t_out_s if given else self._settings.queues.t_out_s,
            self._facts.queued(operator),
            self._facts.loads_of(operator),
            self._timers.told(operator),
            operator in self._state.totals and self._state.totals[operator].processed > 0,
            wakes,
        )

    def _wake(self, lane: LaneId, wall_s: float, *, computes: bool) -> LaneWork:
        """Wake suspected keys, or bury the one that has ended its host too often."""
        keys, operator = self._suspected_keys(lane, wall_s), lane.operator
        # Its receipt says when the next key is to be woken, as long as the lane owns the same groups.
        self._timers.groups_for_work(lane)
        due = lane.lane, keys.groups, keys.clock_s, keys.watermark_s
        if self._suspects.condemned(lane):
            return BuryTimer(self._works.next_id(), operator, *due, ENDED)
        return WakeWork(
            self._works.next_id(),
            operator,
            *due,
            keys.keys,
            computes,
            self._works.next_turn(),
            self._facts.queued(operator),
            self._facts.loads_of(operator),
        )

    def _give(self, rows_of: dict[LaneId, int], dispatch: Dispatch, wall_s: float) -> Given | None:
        """Give tuples to a sink: as they were given before, or from now on."""
        given = None
        for lane, rows in rows_of.items():
            given = self._state.given.get(lane)
            if given is None:
                given = Given(*lane, rows, self._state.entry, wall_s, self._settings.queues.t_out_s)
                dispatch.given.append(given)
        return given

    def _lane_rows(self, lane: LaneId, rows: int) -> LaneRows:
        queue = self._state.queue(lane)
        # Merged states and timers do not go together.
        groups = (
            tuple(self._groups.of_lane(lane)) if lane.operator in self._merging else self._timers.groups_for_work(lane)
        )
        return LaneRows(lane.lane, queue.consumed, list(queue.peek(rows)), groups)

    def _suspected_keys(self, lane: LaneId, wall_s: float) -> TimerSuspect:
        keys = self._suspects.keys_of(lane)
        if keys is None:
            keys = TimerSuspect(wall_s, self._timers.told(lane.operator), self._timers.groups_of(lane))
            self._suspects.suspect_keys(lane, keys)
        return keys
