"""Works of replayed sources: the tuples that are due, as far as hosts have threads and there is room behind them."""

from elastream import rules
from elastream.engine.driver.commit.estimates import Estimates
from elastream.engine.driver.dispatch.replays import Replays
from elastream.engine.driver.dispatch.routing_facts import RoutingFacts
from elastream.engine.driver.dispatch.works import Dispatch, Moment, UnderWay, WorkTable
from elastream.engine.driver.placement.homes import LaneHomes
from elastream.engine.messages import SourceWork
from elastream.lanes.segments import LaneId


class SourceWorks:
    """Takes tuples from the replays. In the driver's thread only."""

    def __init__(
        self, replays: Replays, estimates: Estimates, homes: LaneHomes, facts: RoutingFacts, works: WorkTable
    ) -> None:
        self._replays = replays
        self._estimates = estimates
        self._homes = homes
        self._facts = facts
        self._works = works

    def next_s(self, now: float, wall_s: float) -> float:
        """When the next tuple of a source is due, by the monotonic clock."""
        return now + self._replays.next_due_s(wall_s, now, rules.PACE_S)

    def add(self, dispatch: Dispatch, ready: list[LaneId], moment: Moment) -> None:
        """Add a work for each part of a source that has none and has tuples that are due.

        The one that waits longest is first, for threads and for room. If lanes that compute are `ready`, sources leave them
        one work in every host.
        """
        lanes_wait = any(self._estimates.computes(lane.operator) for lane in ready)
        most_reading = rules.DEPTH - 1 if lanes_wait else rules.DEPTH
        for source, part in self._replays.free():
            if not self._replays.is_due(source, moment.wall_s, moment.now, rules.PACE_S):
                continue
            quota = rules.quota(self._estimates.of(source), moment.budget_s, rules.FIRST_INTAKE)
            most = min(quota, self._works.headroom.for_sender(source))
            if most < 1:
                continue
            record = self._homes.host_for_source(LaneId(source, part), most_reading)
            if record is None:
                continue
            taken = self._replays.take(source, part, most, moment.wall_s, moment.now, rules.PACE_S)
            if taken is None:
                continue
            first, stop, origin_s, arrivals = taken
            work = SourceWork(
                self._works.next_id(),
                source,
                part,
                first,
                stop,
                origin_s,
                list(arrivals.ends_s),
                list(arrivals.counts),
                self._works.next_turn(),
                self._facts.queued(source),
                self._facts.loads_of(source),
            )
            self._works.headroom.reserve(work.id, source, stop - first)
            self._works.add(UnderWay(work.id, record.host, source, {}, moment.now, True, False, work), record)
            dispatch.add(record.host, work)
