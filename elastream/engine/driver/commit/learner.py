"""Learning from receipts that were applied: service times, timers, and which lanes are free again."""

from elastream.engine.driver.commit.committer import Committed
from elastream.engine.driver.commit.estimates import Estimates
from elastream.engine.driver.dispatch.lane_schedule import LaneSchedule
from elastream.engine.driver.dispatch.returned import ReturnedWorks
from elastream.engine.driver.dispatch.works import Moment
from elastream.engine.driver.event_time.timers import LaneTimers
from elastream.engine.driver.placement.moves import GroupMoves
from elastream.engine.driver.placement.state_keeper import StateKeeper


class Learner:
    """In the driver's thread only."""

    def __init__(
        self,
        estimates: Estimates,
        timers: LaneTimers,
        keeper: StateKeeper,
        moves: GroupMoves,
        returned: ReturnedWorks,
        schedule: LaneSchedule,
    ) -> None:
        self._estimates = estimates
        self._timers = timers
        self._keeper = keeper
        self._moves = moves
        self._returned = returned
        self._schedule = schedule
        self.timed: dict[str, float] = {}
        """Seconds per tuple, measured before the stream began."""

    def learn(self, committed: Committed, moment: Moment) -> None:
        for receipt in committed.receipts:
            self._estimates.learn(receipt)
        if self._timers:
            self._timers.hear([lane for receipt in committed.receipts for lane in receipt.operators], moment.now)
        for work, receipt in committed.done:
            if receipt.timed is not None:
                self.timed = receipt.timed
                self._estimates.seed(receipt.timed)
            if work.task is not None:
                self._keeper.done(work.task, receipt)
                self._moves.done(work.task)
            self._returned.done(work.id, moment.now)
        self._schedule.filled(committed.filled, moment.now)
