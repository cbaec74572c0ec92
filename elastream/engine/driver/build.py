"""A driver, put together: the stages of a tick around the tables, and the loop around the tick."""

from dataclasses import dataclass

from elastream import rules
from elastream.engine.clock import Clock
from elastream.engine.driver.beginning import HostsJoin, OperatorTiming
from elastream.engine.driver.commit.check_receipts import ReceiptCheck
from elastream.engine.driver.commit.committer import Committer
from elastream.engine.driver.commit.entries import EntryBuilder
from elastream.engine.driver.commit.first_failures import FirstFailures
from elastream.engine.driver.commit.host_events import HostEvents, HostWelcome
from elastream.engine.driver.commit.housekeeping import Housekeeping
from elastream.engine.driver.commit.learner import Learner
from elastream.engine.driver.commit.merge import ReceiptMerger
from elastream.engine.driver.commit.writer import EntryWriter
from elastream.engine.driver.dispatch.dispatcher import Dispatcher
from elastream.engine.driver.dispatch.lane_dispatch import LaneDispatch
from elastream.engine.driver.dispatch.lane_schedule import LaneSchedule
from elastream.engine.driver.dispatch.lane_works import LaneWorks
from elastream.engine.driver.dispatch.returned import ReturnedWorks
from elastream.engine.driver.dispatch.source_works import SourceWorks
from elastream.engine.driver.dispatch.state_works import StateWorks
from elastream.engine.driver.end_of_stream import EndOfStream
from elastream.engine.driver.event_time.timers import LaneTimers
from elastream.engine.driver.lifecycle import RunLife
from elastream.engine.driver.loop import Beginning, Conditions, Opening, TickLoop, TickPump
from elastream.engine.driver.outbox import Outbox
from elastream.engine.driver.pace import TickPace
from elastream.engine.driver.placement.group_mover import GroupMover
from elastream.engine.driver.placement.host_changes import HostChanges
from elastream.engine.driver.placement.host_control import HostControl
from elastream.engine.driver.placement.moves import GroupMoves
from elastream.engine.driver.placement.placer import Placer
from elastream.engine.driver.placement.redirector import Redirector
from elastream.engine.driver.placement.retirement import Retirement
from elastream.engine.driver.placement.spreader import LaneSpreader
from elastream.engine.driver.ports import Edges
from elastream.engine.driver.publish import Publisher
from elastream.engine.driver.request_handler import RequestHandler
from elastream.engine.driver.run_base import RunBase
from elastream.engine.driver.tables import Tables
from elastream.engine.driver.tick import Stages, TickRunner, TickTables
from elastream.engine.driver.timeouts import WorkTimeouts
from elastream.engine.hosts.link import HostLink
from elastream.fleet.engine_fleet import EngineFleet
from elastream.fleet.machines import Machines
from elastream.lanes.entries import Entry
from elastream.settings import Settings
from elastream.topology import Graph


@dataclass(frozen=True)
class DriverInputs:
    """The ports and values that a driver is made with."""

    graph: Graph
    settings: Settings
    base: RunBase
    link: HostLink
    machines: Machines
    clock: Clock
    life: RunLife
    housekeeping: Housekeeping
    edges: Edges | None = None
    """Spark's part of the graph, if it has one."""


@dataclass(frozen=True)
class DispatchParts:
    """The parts that send works and take them back."""

    timers: LaneTimers
    schedule: LaneSchedule
    returned: ReturnedWorks
    changes: HostChanges
    dispatcher: Dispatcher


@dataclass(frozen=True)
class Driver:
    """A driver, ready to run."""

    tables: Tables
    dispatch: DispatchParts
    fleet: EngineFleet
    mover: GroupMover
    redirector: Redirector
    failures: FirstFailures
    learner: Learner
    pace: TickPace
    requests: RequestHandler
    runner: TickRunner


def make_dispatch(graph: Graph, settings: Settings, tables: Tables, edges: Edges | None = None) -> DispatchParts:
    state, works, estimates, facts = tables.state, tables.works, tables.estimates, tables.facts
    has_unread = edges.has_unread if edges is not None else tables.replays.has_unread
    timers = LaneTimers(graph, state, has_unread)
    schedule = LaneSchedule(graph, state, estimates, works)
    returned = ReturnedWorks(graph, state, works, schedule, tables.replays, timers)
    changes = HostChanges(state, tables.hosts, tables.homes, tables.groups, tables.keeper, returned)
    maker = LaneWorks(graph, settings, state, estimates, tables.groups, timers, facts, works)
    dispatcher = Dispatcher(
        works,
        schedule,
        timers,
        StateWorks(tables.hosts, tables.groups, tables.keeper, works),
        SourceWorks(tables.replays, estimates, tables.homes, facts, works),
        LaneDispatch(tables.homes, tables.keeper, estimates, works, schedule, maker),
    )
    return DispatchParts(timers, schedule, returned, changes, dispatcher)


def make_driver(around: DriverInputs, tables: Tables) -> Driver:
    graph, settings, base, link, edges = around.graph, around.settings, around.base, around.link, around.edges
    state, hosts, homes, groups = tables.state, tables.hosts, tables.homes, tables.groups
    works, keeper, estimates = tables.works, tables.keeper, tables.estimates
    dispatch = make_dispatch(graph, settings, tables, edges)
    pace = TickPace(settings, around.clock)

    moves = GroupMoves(groups, keeper, works)
    mover = GroupMover(state, homes, groups, moves, works)
    redirector = Redirector(graph, state, groups, mover, tables.loads, tables.redirections)
    placer = Placer(homes, keeper, redirector, mover, LaneSpreader(state, hosts, homes, groups, moves))

    retirement = Retirement(hosts, homes, groups, link)
    fleet = EngineFleet(HostControl(hosts, link, retirement), around.machines, around.clock.now, rules.MOST_WAITING)

    welcome = HostWelcome(base, hosts, tables.facts, link)
    events = HostEvents(works, hosts, keeper, dispatch.changes, ReceiptCheck(graph, state), welcome)
    entries = EntryBuilder(state, estimates, works, tables.replays, around.housekeeping)
    failures = FirstFailures(settings.errors.stop_after_failures)
    committer = Committer(state, events, ReceiptMerger(graph, settings), failures, entries, edges)
    learner = Learner(estimates, dispatch.timers, keeper, moves, dispatch.returned, dispatch.schedule)

    stages = Stages(
        committer,
        learner,
        placer,
        dispatch.dispatcher,
        EntryWriter(entries, base, keeper, edges),
        Outbox(hosts, tables.facts, link, retirement, fleet),
    )
    requests = RequestHandler(works, tables.replays, placer, fleet, pace)
    tick_tables = TickTables(dispatch.schedule, dispatch.timers, tables.loads, pace)
    runner = TickRunner(stages, tick_tables, requests, base, around.clock, around.life)
    return Driver(tables, dispatch, fleet, mover, redirector, failures, learner, pace, requests, runner)


def make_loop(
    around: DriverInputs, driver: Driver, publisher: Publisher, first_entry: Entry, *, timing_s: float
) -> TickLoop:
    """The loop of a run, which begins with this entry. `timing_s`: how long to time the operators; 0: not at all."""
    tables, link, life, clock = driver.tables, around.link, around.life, around.clock
    hosts, works, replays = tables.hosts, tables.works, tables.replays
    return TickLoop(
        TickPump(driver.runner, driver.dispatch.dispatcher, driver.pace, publisher, link, clock),
        Beginning(
            first_entry,
            HostsJoin(hosts, driver.fleet, link, life, clock),
            OperatorTiming(hosts, works, replays, link, life, clock),
            timing_s,
            around.graph.reached_by_keys,
        ),
        Opening(replays, driver.dispatch.schedule, driver.mover, driver.requests),
        Conditions(
            EndOfStream(tables.state, works, replays, driver.dispatch.timers, around.edges),
            WorkTimeouts(works, hosts, link, around.settings.works.timeout_s),
            works,
            around.housekeeping,
        ),
        around.base,
        life,
    )
