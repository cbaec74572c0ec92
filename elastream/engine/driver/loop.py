"""The driver's thread: a run begins when its hosts have joined, then tick follows tick until nothing is left to do."""

import gc
from dataclasses import dataclass

from elastream import rules
from elastream.engine.clock import Clock
from elastream.engine.driver.beginning import HostsJoin, OperatorTiming
from elastream.engine.driver.commit.housekeeping import Housekeeping
from elastream.engine.driver.dispatch.dispatcher import Dispatcher
from elastream.engine.driver.dispatch.lane_schedule import LaneSchedule
from elastream.engine.driver.dispatch.replays import Replays
from elastream.engine.driver.dispatch.works import WorkTable
from elastream.engine.driver.end_of_stream import EndOfStream
from elastream.engine.driver.lifecycle import Phase, RunLife
from elastream.engine.driver.pace import TickPace
from elastream.engine.driver.placement.group_mover import GroupMover
from elastream.engine.driver.publish import Publisher
from elastream.engine.driver.request_handler import RequestHandler
from elastream.engine.driver.run_base import RunBase
from elastream.engine.driver.tick import TickRunner
from elastream.engine.driver.timeouts import WorkTimeouts
from elastream.engine.hosts.link import HostLink
from elastream.lanes.entries import Entry

STOP_S = 2.0
"""How long works under way may still go on after a stop; then they did not happen."""

SHORTEST_REST_S = 0.0002
"""A shorter rest would be longer than it is meant to be."""


class TickPump:
    """Waits for events of hosts, makes a tick of them, and publishes. In the driver's thread only."""

    def __init__(
        self,
        runner: TickRunner,
        dispatcher: Dispatcher,
        pace: TickPace,
        publisher: Publisher,
        link: HostLink,
        clock: Clock,
    ) -> None:
        self._runner = runner
        self._dispatcher = dispatcher
        self._pace = pace
        self._publisher = publisher
        self._link = link
        self._clock = clock

    def tick(self, timeout_s: float) -> None:
        """Make one tick, of events that come within this time."""
        self._publisher.after_tick(self._runner.run_once(self._link.poll(timeout_s)))

    def rest(self) -> None:
        """Ticks take at most a share of a core: events that come meanwhile are taken together."""
        rest_s = rules.rest(self._pace.cpu_s)
        if rest_s > SHORTEST_REST_S:
            self._clock.sleep(rest_s)

    def next_tick(self) -> None:
        """Make the tick that is due next."""
        self.rest()
        now = self._clock.now()
        next_s = max(self._dispatcher.next_s(now, self._clock.wall_s()), self._pace.paused_until_s)
        self.tick(min(max(0.0, next_s - now), rules.IDLE_S))

    def publish(self) -> None:
        self._publisher.publish()


@dataclass(frozen=True)
class Beginning:
    """Steps that happen once, before the stream flows."""

    first_entry: Entry
    hosts_join: HostsJoin
    timing: OperatorTiming
    timing_s: float
    """0: operators are not timed."""
    key_operators: tuple[str, ...]
    """Operators that are reached by keys."""


@dataclass(frozen=True)
class Conditions:
    """Conditions that are checked between two ticks."""

    end: EndOfStream
    timeouts: WorkTimeouts
    works: WorkTable
    housekeeping: Housekeeping


@dataclass(frozen=True)
class Opening:
    """Parts that the first ticks need."""

    replays: Replays
    schedule: LaneSchedule
    mover: GroupMover
    requests: RequestHandler


class TickLoop:
    """Decides when a tick comes, and when none does any more."""

    def __init__(
        self,
        pump: TickPump,
        beginning: Beginning,
        opening: Opening,
        conditions: Conditions,
        base: RunBase,
        life: RunLife,
    ) -> None:
        self._pump = pump
        self._beginning = beginning
        self._opening = opening
        self._conditions = conditions
        self._base = base
        self._life = life

    def run(self) -> None:
        """From the first host to the end."""
        self._life.enter(self._opening.requests.carry_out)
        error: BaseException | None = None
        try:
            self._base.commit(self._beginning.first_entry)
            self._begin()
            # Collecting garbage among all that was imported would hold up a tick for a tenth of a second.
            gc.freeze()
            self._opening.schedule.begin(self._life.now())
            while not self._is_over():
                self._pump.next_tick()
            self._let_finish()
        except BaseException as raised:
            error = raised
        gc.unfreeze()
        self._pump.publish()
        self._life.over(error)

    def _begin(self) -> None:
        """Wait for hosts, time the operators, and let the replays begin."""
        beginning, life, state = self._beginning, self._life, self._base.state
        beginning.hosts_join.wait(self._pump.tick)
        beginning.timing.run(beginning.timing_s, self._pump.tick)
        if life.phase is not Phase.STARTING:
            return
        for operator in beginning.key_operators:
            # A run that ended in the middle of a change, or had other limits.
            self._opening.mover.follow(operator, life.now(), life.wall_s())
        origins = self._opening.replays.begin(life.wall_s())
        self._base.commit(Entry(state.entry + 1, life.wall_s(), sources=origins))
        life.begun()

    def _is_over(self) -> bool:
        if self._life.phase is not Phase.RUNNING:
            return True
        self._conditions.timeouts.check(self._life.now())
        return self._conditions.end.is_reached()

    def _let_finish(self) -> None:
        """Works under way may come back for a while; those that do not, did not happen. The same for housekeeping."""
        until, conditions = self._life.now() + STOP_S, self._conditions
        while (left_s := until - self._life.now()) > 0 and (conditions.works or conditions.housekeeping.is_looking):
            self._pump.tick(min(left_s, 0.1))
