"""Which lanes are served next, by which host, and how many of their tuples.

Only lanes that changed are looked at: each that has tuples and no work under way stands in a heap by the time it is due, or
among those that wait for a seat.
"""

import heapq
import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

from elastream import rules
from elastream.engine.messages import LaneRows, LaneWork, Loads, SourceWork, TimeWork, Work
from elastream.engine.tick.estimates import Estimates
from elastream.engine.tick.headroom import Headroom
from elastream.engine.tick.lane_loads import LaneLoads
from elastream.engine.tick.replays import Replays
from elastream.engine.tick.roster import Roster, Seats
from elastream.engine.tick.state_keeper import SentTask, StateKeeper, Task
from elastream.engine.tick.suspects import Suspects, TimerSuspect
from elastream.engine.tick.timers import LaneTimers
from elastream.lanes.segments import LaneId
from elastream.lanes.state import Given, LedgerState
from elastream.settings import Settings
from elastream.topology import Graph, Kind


@dataclass(frozen=True)
class UnderWay:
    """A work that a host has."""

    id: int
    host: int
    operator: str
    lanes: dict[LaneId, int]
    """How many tuples of each lane."""
    sent_s: float
    computes: bool
    alone: bool
    source: SourceWork | None = None
    task: SentTask | None = None
    """About states."""


@dataclass
class NextWorks:
    """What is to be sent, and what must be in the ledger before it is."""

    works: dict[int, list[Work]] = field(default_factory=dict)
    """Per host."""
    given: list[Given] = field(default_factory=list)
    offer: int = -1
    """The number of a new offer to dataframe operators."""


class Planner:
    """Keeps the lanes that have tuples, and the works under way. All of it in the tick's thread."""

    def __init__(
        self, graph: Graph, settings: Settings, state: LedgerState, estimates: Estimates, loads: LaneLoads
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._state = state
        self._estimates = estimates
        self.loads = loads
        self.headroom = Headroom(graph, settings, state, estimates)
        self.roster = Roster()
        self.keeper = StateKeeper(graph, state, self.roster, settings.ring_s)
        self.roster.settlers, self.roster.prefer = self.keeper.operators, self.keeper.copy_host
        self.timers = LaneTimers(graph, state)
        self.suspects = Suspects()
        self.replays = Replays(graph, state)
        self.under_way: dict[int, UnderWay] = {}
        self.budget_s = settings.budget_s
        self.held: set[LaneId] = set()
        """Lanes that get no work: what waits in them is to be dropped."""
        self._ids = count(1)
        self._turns = count()
        self._busy: set[LaneId] = set()
        self._given_s: dict[LaneId, float] = {}
        self._due: list[tuple[float, int, LaneId]] = []
        self._due_at: dict[LaneId, float] = {}
        self._starved: dict[LaneId, None] = {}
        self._hosted = frozenset(o.name for o in graph.served if o.kind is not Kind.OUTPUT and not o.by_spark)
        self._whole = frozenset(o.name for o in graph.served if graph.chain(o.name)[-1].kind is Kind.SINK)
        self._counting: dict[str, list[str]] = {
            head.name: [e.target for e in graph.edges_leaving(head.name) if e.grouping.kind == "partial_key"]
            for head in (*graph.sources, *graph.served)
        }
        self._merging = frozenset(o.name for o in graph.served if o.keyed is not None and o.keyed.merge is not None)
        self._hints: dict[str, bool] = {
            o.name: all(member.waits for member in graph.chain(o.name)) for o in graph.served
        }

    # -- what has happened

    def filled(self, lanes: list[LaneId], now: float) -> None:
        """Tuples have come into these lanes."""
        for lane in lanes:
            if lane.operator in self._hosted and lane not in self._busy:
                self._schedule(lane, now)

    def done(self, work: int, now: float) -> UnderWay | None:
        """A receipt has come and been applied: its lanes are free. None when nobody knows the work."""
        known = self._pop(work)
        if known is not None:
            for lane, rows in known.lanes.items():
                if known.task is None:
                    self._came_back(lane, rows)
                self._schedule(lane, now)
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
            self._pop(known.id)
            if known.source is not None:
                self.replays.lost(known.source)
            if known.task is not None:
                self.keeper.lost(known.task)
            for lane, rows in known.lanes.items():
                if known.task is None:
                    first, whole = self._state.queue(lane).consumed, lane.operator in self._whole
                    wakes = bool(self.timers.groups_of(lane))
                    self.suspects.host_died(lane, first, rows, alone=known.alone, whole=whole, wakes=wakes)
                self._schedule(lane, now)
        self.keeper.host_went(host)
        self.roster.spread(self._state.lanes)
        return works

    def came(self, seats: Seats) -> None:
        self.roster.came(seats)
        self.roster.spread(self._state.lanes)

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
        for lane in self._starved:
            found[lane.operator] += len(self._state.queue(lane))
        return found

    def begin(self, now: float) -> None:
        """Look at all lanes once: what waited when the run began."""
        for lane, queue in self._state.lanes.items():
            if len(queue) and lane.operator in self._hosted:
                self._schedule(lane, now)

    # -- what comes next

    def plan(self, now: float, wall_s: float) -> NextWorks:
        """Works for the lanes that are due and for the sources, as far as there are seats."""
        planned = NextWorks()
        while self._due and self._due[0][0] <= now:
            at, _, lane = heapq.heappop(self._due)
            if self._due_at.get(lane) == at:
                del self._due_at[lane]
                self._starved[lane] = None
        woken: dict[LaneId, None] = dict.fromkeys(self.timers.due(wall_s) if self.timers else ())
        if self.suspects:
            # Keys are woken when the tuples before them are not suspected any more, and then no tuple is served.
            woken = {lane: None for lane in woken if lane not in self.suspects}
            woken |= dict.fromkeys(self.suspects.wakes_only())
        self._starved |= {lane: None for lane in woken if lane not in self._busy}
        if self.roster.hosts:
            ready, self._starved = list(self._starved), {}
            self._plan_tasks(planned, now)
            self._plan_sources(planned, now, wall_s)
            self._plan_lanes(ready, planned, now, wall_s, frozenset(woken))
        return planned

    def next_s(self, wall_s: float, now: float) -> float:
        """When something will be due, by the monotonic clock, should nothing happen before; infinite when nothing will."""
        lanes_s = self._due[0][0] if self._due else math.inf
        if not self.roster.hosts:
            return math.inf
        timers_s = now + max(0.0, self.timers.next_s() - wall_s) if self.timers else math.inf
        return min(lanes_s, timers_s, now + self.replays.next_due_s(wall_s, now, rules.PACE_S))

    def time_work(self, totals: dict[str, int], seconds: float, now: float) -> tuple[int, TimeWork] | None:
        """The work by which one host times the operators."""
        seats = next(iter(self.roster.hosts.values()), None)
        if seats is None:
            return None
        work = TimeWork(next(self._ids), totals, seconds)
        self._send(UnderWay(work.id, seats.host, "", {}, now, computes=True, alone=False), seats)
        return seats.host, work

    def computes(self, operator: str) -> bool:
        """True when its replicas use a core while they are busy; what the user says holds until it was measured."""
        share = self._estimates.cpu_share.get(operator)
        if share is None:
            return not self._hints[operator]
        return share >= rules.COMPUTING_SHARE

    # -- inside

    def _plan_lanes(
        self, ready: list[LaneId], planned: NextWorks, now: float, wall_s: float, woken: frozenset[LaneId]
    ) -> None:
        """Lanes that are `woken` have keys whose time has come, and get a work also without tuples."""
        shared: dict[tuple[str, int], list[LaneId]] = {}
        for lane in ready:
            # A lane whose state is being learned or written is served afterwards.
            rows = 0 if lane in self.held or lane in self._busy else self._rows(lane)
            if not rows and (lane not in woken or lane in self._busy):
                # A lane that was emptied meanwhile comes back when it is filled again.
                if len(self._state.queue(lane)):
                    self._starved[lane] = None
                continue
            computes, alone = self.computes(lane.operator), lane in self.suspects
            seats = self._seats(lane, computes, alone)
            if seats is None:
                self._starved[lane] = None
                continue
            service_s = self._estimates.of(lane.operator)
            if computes and not alone and not self.headroom.bounded and rules.shares_work(rows, service_s):
                lanes = shared.setdefault((lane.operator, seats.host), [])
                lanes.append(lane)
                if len(lanes) == 1:
                    # The work counts from now on, so that others find the seat taken.
                    seats.computing += 1
                elif len(lanes) >= rules.MOST_SHARED:
                    self._shared_work(shared, lane.operator, seats, planned, now, wall_s)
                continue
            self._lane_work({lane: rows}, seats, planned, now, wall_s, computes=computes, alone=alone)
        for operator, host in list(shared):
            self._shared_work(shared, operator, self.roster.hosts[host], planned, now, wall_s)

    def _seats(self, lane: LaneId, computes: bool, alone: bool) -> Seats | None:
        """The host that serves a lane now; None while none can."""
        if lane.operator not in self.keeper.operators:
            return self.roster.lonely() if alone else self.roster.seat(lane, computes)
        if not self.keeper.prepare(lane):
            return None
        return self.roster.alone_at(lane) if alone else self.roster.seat_at_home(lane, computes)

    def _plan_tasks(self, planned: NextWorks, now: float) -> None:
        """Works about states: they run beside the others."""
        for task in self.keeper.tasks() if self.keeper else ():
            seats = self.roster.hosts.get(task.host)
            stands = task.kind is Task.WHOLE and task.lane in self.keeper.stopped
            if seats is None or task.lane in self._busy or stands:
                continue
            work = self.keeper.work(task, next(self._ids))
            lanes = {task.lane: 0} if task.lane is not None else {}
            self._busy.update(lanes)
            sent = self.keeper.sent(task)
            self._send(UnderWay(work.id, seats.host, task.operator, lanes, now, False, False, task=sent), seats)
            planned.works.setdefault(seats.host, []).append(work)

    def _shared_work(
        self,
        shared: dict[tuple[str, int], list[LaneId]],
        operator: str,
        seats: Seats,
        planned: NextWorks,
        now: float,
        wall_s: float,
    ) -> None:
        lanes = shared.pop((operator, seats.host))
        seats.computing -= 1
        self._lane_work(
            {lane: self._rows(lane) for lane in lanes}, seats, planned, now, wall_s, computes=True, alone=False
        )

    def _lane_work(
        self,
        rows_of: dict[LaneId, int],
        seats: Seats,
        planned: NextWorks,
        now: float,
        wall_s: float,
        *,
        computes: bool,
        alone: bool,
    ) -> None:
        operator = next(iter(rows_of)).operator
        whole = operator in self._whole
        service_s = self._estimates.of(operator)
        given = None
        for lane, rows in rows_of.items() if whole else ():
            given = self._state.given.get(lane)
            if given is None:
                given = Given(*lane, rows, self._state.entry, wall_s, self._settings.t_out_s)
                planned.given.append(given)
                self._state.given[lane] = given
        lane = next(iter(rows_of))
        lanes = [self._lane_rows(lane, rows) for lane, rows in rows_of.items()]
        planned_s, watermark_s, wake = given.planned_s if given else wall_s, self.timers.told(operator), None
        if self.suspects.is_waking(lane):
            keys = self._suspected_keys(lane, wall_s)
            planned_s, watermark_s, wake = keys.clock_s, keys.watermark_s, keys.keys
            lanes = [lanes[0]._replace(groups=keys.groups)]
        elif alone:
            # What ends the process is a tuple, or a key that is woken: never both in one work.
            wake = 0
        work = LaneWork(
            next(self._ids),
            operator,
            lanes,
            planned_s,
            0.0 if whole else self.budget_s * rules.OVERRUN,
            1 if service_s < 0 else min(max(1, int(rules.CHUNK_S / max(service_s, 1e-9))), rules.MOST_ROWS),
            computes,
            next(self._turns),
            given.t_out_s if given else self._settings.t_out_s,
            self.queued(operator),
            self.loads_of(operator),
            _ENDED if self.suspects.condemned(lane) else "",
            watermark_s,
            operator in self._state.totals and self._state.totals[operator].processed > 0,
            wake,
        )
        self.headroom.reserve(work.id, operator, sum(rows_of.values()))
        for lane in rows_of:
            self._busy.add(lane)
            self._given_s[lane] = now
        self._send(UnderWay(work.id, seats.host, operator, rows_of, now, computes, alone), seats)
        planned.works.setdefault(seats.host, []).append(work)

    def _suspected_keys(self, lane: LaneId, wall_s: float) -> TimerSuspect:
        found = self.suspects.keys_of(lane)
        if found is None:
            found = TimerSuspect(wall_s, self.timers.told(lane.operator), self.timers.groups_of(lane))
            self.suspects.suspect_keys(lane, found)
        return found

    def _came_back(self, lane: LaneId, rows: int) -> None:
        """A work of a lane is done, whatever was suspected of it."""
        keys = None if rows else self.suspects.keys_of(lane)
        if keys is None:
            self.suspects.served(lane, self._state.queue(lane).consumed)
            return
        self.suspects.woken(lane, left=self.timers.is_due(lane, keys.clock_s, keys.watermark_s))
        # It may have got key groups meanwhile, which were not looked at.
        self.timers.ask(lane)

    def _lane_rows(self, lane: LaneId, rows: int) -> LaneRows:
        queue = self._state.queue(lane)
        # Merged states and timers do not go together.
        groups = tuple(self.keeper.groups_of(lane)) if lane.operator in self._merging else self.timers.groups_of(lane)
        return LaneRows(lane.lane, queue.consumed, list(queue.peek(rows)), groups)

    def _rows(self, lane: LaneId) -> int:
        """How many tuples of a lane to serve next; 0 when those behind it have no room."""
        if self.suspects.is_waking(lane):
            return 0
        given = self._state.given.get(lane)
        if given is not None:
            return given.rows
        queue, whole = self._state.queue(lane), lane.operator in self._whole
        first = rules.FIRST_DELIVERY if whole else rules.FIRST_TRY
        wanted = rules.quota(self._estimates.of(lane.operator), self.budget_s, first)
        rows = queue.portion(wanted, rules.MOST_BYTES)
        if self.headroom.bounded:
            rows = min(rows, self.headroom.for_sender(lane.operator))
        suspect = self.suspects.get(lane)
        return rows if suspect is None else min(rows, suspect.rows)

    def _plan_sources(self, planned: NextWorks, now: float, wall_s: float) -> None:
        for source, part in self.replays.free():
            seats = self.roster.seat(LaneId(source, part), computes=True)
            if seats is None:
                return
            quota = rules.quota(self._estimates.of(source), self.budget_s, rules.FIRST_INTAKE)
            most = min(quota, self.headroom.for_sender(source))
            found = self.replays.take(source, part, most, wall_s, now, rules.PACE_S)
            if found is None:
                continue
            first, stop, origin_s, arrivals = found
            work = SourceWork(
                next(self._ids),
                source,
                part,
                first,
                stop,
                origin_s,
                list(arrivals.ends_s),
                list(arrivals.counts),
                next(self._turns),
                self.queued(source),
                self.loads_of(source),
            )
            self.headroom.reserve(work.id, source, stop - first)
            self._send(UnderWay(work.id, seats.host, source, {}, now, True, False, work), seats)
            planned.works.setdefault(seats.host, []).append(work)

    def loads_of(self, head: str) -> list[Loads]:
        """For the edges that leave a chain and are routed by load."""
        return self.loads.for_sender(head, self._senders(head)) if self.loads else []

    def queued(self, head: str) -> dict[str, list[int]]:
        """Per target behind a chain that wants to know, how many tuples wait in its active lanes."""
        targets = self._counting[head]
        if not targets:
            return {}
        found: dict[str, list[int]] = {}
        for target in targets:
            lanes = self._state.lanes_of(target)
            sizes = range(self._state.sizes[target])
            found[target] = [len(lanes[number]) if number in lanes else 0 for number in sizes]
        return found

    def _senders(self, head: str) -> Counter[str]:
        """Works under way that send to the same targets."""
        wanted = set(self.loads.targets_of(head))
        senders: Counter[str] = Counter()
        if wanted:
            for known in self.under_way.values():
                if known.operator:
                    senders.update(wanted.intersection(self.loads.targets_of(known.operator)))
        return senders

    def _schedule(self, lane: LaneId, now: float) -> None:
        queue = self._state.lanes.get(lane)
        if queue is None or not len(queue) or lane in self._starved:
            return
        rows, service_s = len(queue), self._estimates.of(lane.operator)
        at = rules.due_s(rows, service_s, self._given_s.get(lane, -math.inf), now, rules.LANE_PACE_S)
        if at < self._due_at.get(lane, math.inf):
            self._due_at[lane] = at
            heapq.heappush(self._due, (at, next(self._turns), lane))

    def _send(self, known: UnderWay, seats: Seats) -> None:
        self.under_way[known.id] = known
        seats.works.add(known.id)
        seats.computing += known.computes

    def _pop(self, work: int) -> UnderWay | None:
        known = self.under_way.pop(work, None)
        if known is not None:
            self.headroom.release(work)
            self._busy.difference_update(known.lanes)
            seats = self.roster.hosts.get(known.host)
            if seats is not None and work in seats.works:
                seats.works.discard(work)
                seats.computing -= known.computes
        return known


_ENDED = "the process that served it ended, three times in a row: a crash in native code, os._exit, or more memory than there is"
