"""The tick: events of hosts enter, one entry is committed, works leave.

A tick takes whatever has come and waits for nothing, so a slow lane holds up no other. Its stages:

    commit      receipts become the part of an entry that says what was done; it is applied to the driver's state
    learn       service times, timers and loads follow; lanes whose works are done are free
    place       key groups, lanes and states follow sizes, load and hosts
    dispatch    lanes and sources that are due get works
    write       the entry is completed with what was planned, and written: this is the commit
    send        works and routing go to the hosts

Before the write nothing of a tick can be seen outside the driver: one that ends before it has done nothing. After the write
everything that the entry says has happened: sinks get what it gives them, from this driver or from the next. Works that no
entry names need no memory, because their tuples are still in their lanes.

Requests of other threads wait in `RunLife`, finished batches of Spark at the edges; the next tick takes them. Whatever measures,
decides or listens runs beside the driver, on what it publishes (`publish.py`).
"""

from dataclasses import dataclass

from elastream.engine.clock import Clock
from elastream.engine.driver.commit.committer import Committed, Committer
from elastream.engine.driver.commit.learner import Learner
from elastream.engine.driver.commit.writer import EntryWriter
from elastream.engine.driver.dispatch.dispatcher import Dispatcher
from elastream.engine.driver.dispatch.lane_loads import LaneLoads
from elastream.engine.driver.dispatch.lane_schedule import LaneSchedule
from elastream.engine.driver.dispatch.works import Dispatch, Moment
from elastream.engine.driver.event_time.timers import LaneTimers
from elastream.engine.driver.lifecycle import Phase, RunLife
from elastream.engine.driver.outbox import Outbox
from elastream.engine.driver.pace import TickPace
from elastream.engine.driver.placement.placer import Moves, Placer
from elastream.engine.driver.ports import Tick
from elastream.engine.driver.request_handler import RequestHandler
from elastream.engine.driver.run_base import RunBase
from elastream.engine.hosts.link import Event


@dataclass(frozen=True)
class Stages:
    """The stages of a tick, each with its own collaborators."""

    committer: Committer
    learner: Learner
    placer: Placer
    dispatcher: Dispatcher
    writer: EntryWriter
    outbox: Outbox


@dataclass(frozen=True)
class TickTables:
    """Tables that the tick itself changes."""

    schedule: LaneSchedule
    timers: LaneTimers
    loads: LaneLoads
    pace: TickPace


class TickRunner:
    """Makes one tick after another. In the driver's thread only; nothing else changes the state of the ledger."""

    def __init__(
        self, stages: Stages, tables: TickTables, requests: RequestHandler, base: RunBase, clock: Clock, life: RunLife
    ) -> None:
        self._stages = stages
        self._tables = tables
        self._requests = requests
        self._base = base
        self._state = base.state
        self._clock = clock
        self._life = life
        self._last_wall_s = clock.wall_s()
        """When the last tick with a summary was made."""

    def run_once(self, events: list[Event]) -> Tick | None:
        """Make a tick of these events; gives its summary if works were done."""
        stages, pace = self._stages, self._tables.pace
        pace.begin()
        self._base.keep()
        sizes = self._life.take(self._requests.carry_out)
        moment = Moment(self._clock.now(), self._clock.wall_s(), self._life.phase is Phase.RUNNING, pace.budget_s)

        committed = stages.committer.commit(events, sizes, moment)
        stages.learner.learn(committed, moment)
        moves = stages.placer.place(committed, moment)
        watermarks = self._apply(moves, moment)
        dispatch = self._dispatch(moment)
        stages.writer.write(committed, moves.owners, watermarks, dispatch, moment)
        works = stages.outbox.send(dispatch, rerouted=moves.rerouted)

        summary = self._summary(committed)
        self._tables.loads.add(committed.result)
        if moment.running:
            self._tables.loads.step(moment.now)
        stages.outbox.end_hosts(moment.now)
        pace.end(works, had_work=bool(committed.receipts or works))
        return summary

    def _apply(self, moves: Moves, moment: Moment) -> dict[str, float]:
        """Let key groups change hands, with their queued tuples; gives the watermarks that move on."""
        for operator, groups in moves.owners.items():
            givers = {self._state.owners[operator][group] for group in groups}
            filled = self._state.move_groups(operator, groups)
            self._tables.timers.groups_moved(operator, {*givers, *groups.values()})
            self._tables.schedule.filled(filled, moment.now)
        self._stages.placer.applied(moment.now)
        return self._tables.timers.advance(moment.now, moment.wall_s) if moment.running else {}

    def _dispatch(self, moment: Moment) -> Dispatch:
        if not moment.running or moment.now < self._tables.pace.paused_until_s:
            return Dispatch()
        dispatch = self._stages.dispatcher.dispatch(moment)
        self._stages.writer.give_to_spark(dispatch, moment)
        self._state.plan(dispatch.given, dispatch.offer)
        return dispatch

    def _summary(self, committed: Committed) -> Tick | None:
        entry = committed.entry
        if entry is None:
            return None
        started_s, self._last_wall_s = self._last_wall_s, entry.at_s
        queued = {name: self._state.queued(name) for name in self._state.sizes}
        return Tick(
            entry.number,
            started_s,
            entry.at_s,
            committed.result,
            dict(self._state.sizes),
            queued,
            # In a pause, all that is queued waits for a replica.
            queued if self._tables.pace.is_paused else self._tables.schedule.waiting(),
            {name: resize.reason for name, resize in committed.resized.items()},
        )
