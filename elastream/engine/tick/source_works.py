"""The works of replayed sources: the tuples that are due, as far as there are seats and room."""

from collections.abc import Iterator

from elastream import rules
from elastream.engine.messages import SourceWork
from elastream.engine.tick.estimates import Estimates
from elastream.engine.tick.headroom import Headroom
from elastream.engine.tick.replays import Replays
from elastream.engine.tick.roster import Roster
from elastream.engine.tick.routing_facts import RoutingFacts
from elastream.engine.tick.works import NextWorks, PlanMoment, UnderWay, WorksUnderWay
from elastream.lanes.segments import LaneId


class SourceWorks:
    """Takes tuples from the replays, and seats from the roster. In the tick's thread."""

    def __init__(
        self,
        replays: Replays,
        estimates: Estimates,
        headroom: Headroom,
        roster: Roster,
        facts: RoutingFacts,
        works: WorksUnderWay,
        turns: Iterator[int],
    ) -> None:
        self._replays = replays
        self._estimates = estimates
        self._headroom = headroom
        self._roster = roster
        self._facts = facts
        self._works = works
        self._turns = turns

    def plan(self, planned: NextWorks, moment: PlanMoment, *, lanes_wait: bool) -> None:
        """A work for each part of a source that has none and has tuples that are due.

        The one that waits longest is first, for seats and for room. While `lanes_wait`, sources leave them a seat in
        every host.
        """
        most_reading = rules.DEPTH - 1 if lanes_wait else rules.DEPTH
        for source, part in self._replays.free():
            if not self._replays.is_due(source, moment.wall_s, moment.now, rules.PACE_S):
                continue
            quota = rules.quota(self._estimates.of(source), moment.budget_s, rules.FIRST_INTAKE)
            most = min(quota, self._headroom.for_sender(source))
            if most < 1:
                continue
            seats = self._roster.seat_source(LaneId(source, part), most_reading)
            if seats is None:
                continue
            found = self._replays.take(source, part, most, moment.wall_s, moment.now, rules.PACE_S)
            if found is None:
                continue
            first, stop, origin_s, arrivals = found
            work = SourceWork(
                next(self._works.ids),
                source,
                part,
                first,
                stop,
                origin_s,
                list(arrivals.ends_s),
                list(arrivals.counts),
                next(self._turns),
                self._facts.queued(source),
                self._facts.loads_of(source),
            )
            self._headroom.reserve(work.id, source, stop - first)
            self._works.add(UnderWay(work.id, seats.host, source, {}, moment.now, True, False, work), seats)
            planned.works.setdefault(seats.host, []).append(work)
