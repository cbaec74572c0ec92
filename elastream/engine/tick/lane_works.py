"""The works of lanes: how many tuples each lane's next work has, and what its host is told.

Works of suspected lanes serve tuples or wake keys, never both. What a sink is given is noted as given, and is given again as it was.
"""

from collections.abc import Iterator

from elastream import rules
from elastream.engine.messages import LaneRows, LaneWork
from elastream.engine.tick.estimates import Estimates
from elastream.engine.tick.headroom import Headroom
from elastream.engine.tick.routing_facts import RoutingFacts
from elastream.engine.tick.state_keeper import StateKeeper
from elastream.engine.tick.suspects import Suspects, TimerSuspect
from elastream.engine.tick.timers import LaneTimers
from elastream.engine.tick.works import NextWorks, PlanMoment
from elastream.lanes.entries import Given
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.settings import Settings
from elastream.topology import Graph, Kind

ENDED = "the process that served it ended, three times in a row: a crash in native code, os._exit, or more memory than there is"


class LaneWorks:
    """Makes works; who gets them is not known here. Changes what is given and which keys are suspected. In the tick's thread."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        state: LedgerState,
        estimates: Estimates,
        headroom: Headroom,
        keeper: StateKeeper,
        timers: LaneTimers,
        suspects: Suspects,
        facts: RoutingFacts,
        turns: Iterator[int],
    ) -> None:
        self._settings = settings
        self._state = state
        self._estimates = estimates
        self._headroom = headroom
        self._keeper = keeper
        self._timers = timers
        self._suspects = suspects
        self._facts = facts
        self._turns = turns
        self.whole = frozenset(o.name for o in graph.served if graph.chain(o.name)[-1].kind is Kind.SINK)
        """Operators whose works are not cut: a sink must see the same rows again."""
        self._merging = frozenset(o.name for o in graph.served if o.keyed is not None and o.keyed.merge is not None)

    def rows(self, lane: LaneId, budget_s: float) -> int:
        """How many tuples of a lane to serve next; 0 when those behind it have no room."""
        if self._suspects.is_waking(lane):
            return 0
        given = self._state.given.get(lane)
        if given is not None:
            return given.rows
        queue, whole = self._state.queue(lane), lane.operator in self.whole
        first = rules.FIRST_DELIVERY if whole else rules.FIRST_TRY
        wanted = rules.quota(self._estimates.of(lane.operator), budget_s, first)
        rows = queue.portion(wanted, rules.MOST_BYTES)
        if self._headroom.bounded:
            rows = min(rows, self._headroom.for_sender(lane.operator))
        suspect = self._suspects.get(lane)
        return rows if suspect is None else min(rows, suspect.rows)

    def make(
        self,
        number: int,
        rows_of: dict[LaneId, int],
        planned: NextWorks,
        moment: PlanMoment,
        *,
        computes: bool,
        alone: bool,
    ) -> LaneWork:
        """One work for some lanes of one operator; what a sink is given by it is planned, too."""
        lane = next(iter(rows_of))
        operator = lane.operator
        whole = operator in self.whole
        service_s = self._estimates.of(operator)
        given = self._give(rows_of, planned, moment.wall_s) if whole else None
        lanes = [self._lane_rows(lane, rows) for lane, rows in rows_of.items()]
        planned_s, watermark_s, wake = given.planned_s if given else moment.wall_s, self._timers.told(operator), None
        if self._suspects.is_waking(lane):
            keys = self._suspected_keys(lane, moment.wall_s)
            planned_s, watermark_s, wake = keys.clock_s, keys.watermark_s, keys.keys
            lanes = [lanes[0]._replace(groups=keys.groups)]
        elif alone:
            # What ends the process is a tuple, or a key that is woken: never both in one work.
            wake = 0
        return LaneWork(
            number,
            operator,
            lanes,
            planned_s,
            0.0 if whole else moment.budget_s * rules.OVERRUN,
            1 if service_s < 0 else min(max(1, int(rules.CHUNK_S / max(service_s, 1e-9))), rules.MOST_ROWS),
            computes,
            next(self._turns),
            given.t_out_s if given else self._settings.t_out_s,
            self._facts.queued(operator),
            self._facts.loads_of(operator),
            ENDED if self._suspects.condemned(lane) else "",
            watermark_s,
            operator in self._state.totals and self._state.totals[operator].processed > 0,
            wake,
        )

    def _give(self, rows_of: dict[LaneId, int], planned: NextWorks, wall_s: float) -> Given | None:
        """To a sink: as it was given before, or from now on."""
        given = None
        for lane, rows in rows_of.items():
            given = self._state.given.get(lane)
            if given is None:
                given = Given(*lane, rows, self._state.entry, wall_s, self._settings.t_out_s)
                planned.given.append(given)
                self._state.given[lane] = given
        return given

    def _lane_rows(self, lane: LaneId, rows: int) -> LaneRows:
        queue = self._state.queue(lane)
        # Merged states and timers do not go together.
        groups = (
            tuple(self._keeper.groups_of(lane))
            if lane.operator in self._merging
            else self._timers.groups_for_work(lane)
        )
        return LaneRows(lane.lane, queue.consumed, list(queue.peek(rows)), groups)

    def _suspected_keys(self, lane: LaneId, wall_s: float) -> TimerSuspect:
        found = self._suspects.keys_of(lane)
        if found is None:
            found = TimerSuspect(wall_s, self._timers.told(lane.operator), self._timers.groups_of(lane))
            self._suspects.suspect_keys(lane, found)
        return found
