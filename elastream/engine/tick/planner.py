"""Which lanes are served next, and by which host: works for what is due, as far as there are seats."""

import math
from collections import Counter
from collections.abc import Iterable
from itertools import count

from elastream import rules
from elastream.engine.messages import TimeWork
from elastream.engine.tick.estimates import Estimates
from elastream.engine.tick.headroom import Headroom
from elastream.engine.tick.lane_loads import LaneLoads
from elastream.engine.tick.lane_schedule import LaneSchedule
from elastream.engine.tick.lane_works import LaneWorks
from elastream.engine.tick.replays import Replays
from elastream.engine.tick.roster import Roster, Seats
from elastream.engine.tick.routing_facts import RoutingFacts
from elastream.engine.tick.source_times import HasUnread
from elastream.engine.tick.source_works import SourceWorks
from elastream.engine.tick.state_keeper import StateKeeper
from elastream.engine.tick.state_works import plan_state_works
from elastream.engine.tick.suspects import Suspects
from elastream.engine.tick.timers import LaneTimers
from elastream.engine.tick.works import NextWorks, PlanMoment, UnderWay, WorksUnderWay
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.settings import Settings
from elastream.topology import Graph, Kind


class Planner:
    """Keeps the lanes that have tuples, and the works under way. All of it in the tick's thread."""

    def __init__(
        self, graph: Graph, settings: Settings, state: LedgerState, estimates: Estimates, loads: LaneLoads
    ) -> None:
        self._state = state
        self._estimates = estimates
        self.loads = loads
        self.headroom = Headroom(graph, settings, state, estimates)
        self.roster = Roster()
        self.keeper = StateKeeper(graph, state, self.roster, settings.ring_s)
        self.roster.settlers, self.roster.prefer = self.keeper.operators, self.keeper.copy_host
        self.replays = Replays(graph, state)
        self.has_unread: HasUnread = self.replays.has_unread
        """Whether rows of a source are there that were not read."""
        self.timers = LaneTimers(graph, state, lambda *of: self.has_unread(*of))
        self.suspects = Suspects()
        self.budget_s = settings.budget_s
        """How long a work may take."""
        self.held: set[LaneId] = set()
        """Lanes that get no work: what waits in them is to be dropped."""
        self._works = WorksUnderWay(self.roster, self.headroom)
        self.under_way, self._busy = self._works.known, self._works.busy
        self.facts = RoutingFacts(graph, state, loads, self.under_way)
        turns = count()
        self._schedule = LaneSchedule(state, estimates, turns)
        self._lane_works = LaneWorks(
            graph,
            settings,
            state,
            estimates,
            self.headroom,
            self.keeper,
            self.timers,
            self.suspects,
            self.facts,
            turns,
        )
        self._source_works = SourceWorks(
            self.replays, estimates, self.headroom, self.roster, self.facts, self._works, turns
        )
        self._hosted = frozenset(o.name for o in graph.served if o.kind is not Kind.OUTPUT and not o.by_spark)
        self._hints: dict[str, bool] = {
            o.name: all(member.waits for member in graph.chain(o.name)) for o in graph.served
        }

    # -- what has happened

    def filled(self, lanes: list[LaneId], now: float) -> None:
        """Tuples have come into these lanes."""
        for lane in lanes:
            if lane.operator in self._hosted and lane not in self._busy:
                self._schedule.add(lane, now)

    def done(self, work: int, now: float) -> UnderWay | None:
        """A receipt has come and been applied: its lanes are free. None when nobody knows the work."""
        known = self._works.remove(work)
        if known is not None:
            for lane, rows in known.lanes.items():
                if known.task is None:
                    self._came_back(lane, rows)
                self._schedule.add(lane, now)
            if not self.suspects:
                self.roster.rejoin()
            if known.source is not None:
                self.replays.done(known.source)
        return known

    def lost(self, host: int, now: float) -> list[UnderWay]:
        """A host is gone: its works go back to their lanes."""
        seats = self.roster.went(host)
        works = [] if seats is None else [self.under_way[work] for work in sorted(seats.works)]
        for known in works:
            self._works.remove(known.id)
            if known.source is not None:
                self.replays.lost(known.source)
            if known.task is not None:
                self.keeper.lost(known.task)
            for lane, rows in known.lanes.items():
                if known.task is None:
                    first, whole = self._state.queue(lane).consumed, lane.operator in self._lane_works.whole
                    wakes = bool(self.timers.groups_of(lane))
                    self.suspects.host_died(lane, first, rows, alone=known.alone, whole=whole, wakes=wakes)
                self._schedule.add(lane, now)
        self.keeper.host_went(host)
        self.roster.spread(self._state.lanes)
        return works

    def came(self, seats: Seats) -> None:
        self.roster.came(seats)
        self.roster.spread(self._state.lanes)

    def hold(self, operators: Iterable[str]) -> None:
        """What waits for these operators now is to be dropped, and counted; what is under way is served."""
        names = frozenset(operators)
        self.held.update(lane for lane in self._state.lanes if lane.operator in names)

    def dropped(self, lane: LaneId, rows: int) -> None:
        """The first tuples of a lane are dropped: nothing is suspected of them, and no host is kept free for them."""
        self.suspects.served(lane, self._state.queue(lane).consumed + rows)
        if not self.suspects:
            self.roster.rejoin()

    def is_busy(self, lane: LaneId) -> bool:
        """True while a work of this lane is under way."""
        return lane in self._busy

    def is_free(self, lane: LaneId) -> bool:
        """True when nothing of it is under way, nor given to somebody outside, nor to be tried again as it was."""
        return lane not in self._busy and lane not in self._state.given and lane not in self.suspects

    def waiting(self) -> Counter[str]:
        """Per operator, the tuples behind a work of their lane that is under way, or without a seat or room to be served."""
        found: Counter[str] = Counter()
        for known in self.under_way.values():
            for lane, rows in known.lanes.items():
                found[lane.operator] += len(self._state.queue(lane)) - rows
        for lane in self._schedule.starved:
            found[lane.operator] += len(self._state.queue(lane))
        return found

    def begin(self, now: float) -> None:
        """Look at all lanes once: what waited when the run began."""
        for lane, queue in self._state.lanes.items():
            if len(queue) and lane.operator in self._hosted:
                self._schedule.add(lane, now)

    # -- what comes next

    def plan(self, now: float, wall_s: float) -> NextWorks:
        """Works for the lanes that are due and for the sources, as far as there are seats."""
        planned, moment = NextWorks(), PlanMoment(now, wall_s, self.budget_s)
        self._schedule.starve_due(now)
        woken: dict[LaneId, None] = dict.fromkeys(self.timers.due(wall_s) if self.timers else ())
        if self.suspects:
            # Keys are woken when the tuples before them are not suspected any more, and then no tuple is served.
            woken = {lane: None for lane in woken if lane not in self.suspects}
            woken |= dict.fromkeys(self.suspects.wakes_only())
        self._schedule.starved |= {lane: None for lane in woken if lane not in self._busy}
        if self.roster.hosts:
            ready = self._schedule.take_starved()
            plan_state_works(self.keeper, self.roster, self._works, planned, now)
            lanes_wait = any(self.computes(lane.operator) for lane in ready)
            self._source_works.plan(planned, moment, lanes_wait=lanes_wait)
            self._plan_lanes(ready, planned, moment, frozenset(woken))
        return planned

    def next_s(self, wall_s: float, now: float) -> float:
        """When something will be due, by the monotonic clock, should nothing happen before; infinite when nothing will."""
        if not self.roster.hosts:
            return math.inf
        timers_s = now + max(0.0, self.timers.next_s() - wall_s) if self.timers else math.inf
        return min(self._schedule.next_s(), timers_s, now + self.replays.next_due_s(wall_s, now, rules.PACE_S))

    def time_work(self, totals: dict[str, int], seconds: float, now: float) -> tuple[int, TimeWork] | None:
        """The work by which one host times the operators."""
        seats = next(iter(self.roster.hosts.values()), None)
        if seats is None:
            return None
        work = TimeWork(next(self._works.ids), totals, seconds)
        self._works.add(UnderWay(work.id, seats.host, "", {}, now, computes=True, alone=False), seats)
        return seats.host, work

    def computes(self, operator: str) -> bool:
        """True when its replicas use a core while they are busy; what the user says holds until it was measured."""
        share = self._estimates.cpu_share.get(operator)
        if share is None:
            return not self._hints[operator]
        return share >= rules.COMPUTING_SHARE

    # -- inside

    def _plan_lanes(
        self, ready: list[LaneId], planned: NextWorks, moment: PlanMoment, woken: frozenset[LaneId]
    ) -> None:
        """Lanes that are `woken` have keys whose time has come, and get a work also without tuples."""
        starved, rows_of = self._schedule.starved, self._lane_works.rows
        shared: dict[tuple[str, int], list[LaneId]] = {}
        for lane in ready:
            # A lane whose state is being learned or written is served afterwards.
            rows = 0 if lane in self.held or lane in self._busy else rows_of(lane, moment.budget_s)
            if not rows and (lane not in woken or lane in self._busy):
                # A lane that was emptied meanwhile comes back when it is filled again.
                if len(self._state.queue(lane)):
                    starved[lane] = None
                    if lane in self.suspects and lane not in self._busy:
                        # Those behind it have no room, and may need the very host that is kept free for it.
                        self.roster.unreserve()
                continue
            computes, alone = self.computes(lane.operator), lane in self.suspects
            seats = self._seats(lane, computes, alone)
            if seats is None:
                starved[lane] = None
                continue
            service_s = self._estimates.of(lane.operator)
            if computes and not alone and not self.headroom.bounded and rules.shares_work(rows, service_s):
                lanes = shared.setdefault((lane.operator, seats.host), [])
                lanes.append(lane)
                if len(lanes) == 1:
                    # The work counts from now on, so that others find the seat taken.
                    seats.computing += 1
                elif len(lanes) >= rules.MOST_SHARED:
                    self._shared_work(shared, lane.operator, seats, planned, moment)
                continue
            self._send({lane: rows}, seats, planned, moment, computes=computes, alone=alone)
        for operator, host in list(shared):
            self._shared_work(shared, operator, self.roster.hosts[host], planned, moment)

    def _seats(self, lane: LaneId, computes: bool, alone: bool) -> Seats | None:
        """The host that serves a lane now; None while none can."""
        if lane.operator not in self.keeper.operators:
            return self.roster.lonely() if alone else self.roster.seat(lane, computes)
        if not self.keeper.prepare(lane):
            return None
        return self.roster.alone_at(lane) if alone else self.roster.seat_at_home(lane, computes)

    def _shared_work(
        self,
        shared: dict[tuple[str, int], list[LaneId]],
        operator: str,
        seats: Seats,
        planned: NextWorks,
        moment: PlanMoment,
    ) -> None:
        lanes = shared.pop((operator, seats.host))
        seats.computing -= 1
        rows_of = {lane: self._lane_works.rows(lane, moment.budget_s) for lane in lanes}
        self._send(rows_of, seats, planned, moment, computes=True, alone=False)

    def _send(
        self,
        rows_of: dict[LaneId, int],
        seats: Seats,
        planned: NextWorks,
        moment: PlanMoment,
        *,
        computes: bool,
        alone: bool,
    ) -> None:
        """One work for some lanes of one operator, to the host in which it has a seat."""
        number = next(self._works.ids)
        work = self._lane_works.make(number, rows_of, planned, moment, computes=computes, alone=alone)
        self.headroom.reserve(number, work.operator, sum(rows_of.values()))
        self._schedule.given_s.update(dict.fromkeys(rows_of, moment.now))
        self._works.add(UnderWay(number, seats.host, work.operator, rows_of, moment.now, computes, alone), seats)
        planned.works.setdefault(seats.host, []).append(work)

    def _came_back(self, lane: LaneId, rows: int) -> None:
        """A work of a lane is done, whatever was suspected of it."""
        keys = None if rows else self.suspects.keys_of(lane)
        if keys is None:
            self.suspects.served(lane, self._state.queue(lane).consumed)
            return
        self.suspects.woken(lane, left=self.timers.is_due(lane, keys.clock_s, keys.watermark_s))
        # It may have got key groups meanwhile, which were not looked at.
        self.timers.ask(lane)
