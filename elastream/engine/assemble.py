"""From a graph, a base and hosts to a run: the parts are made and put together here, and nowhere else."""

import logging
import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from elastream.control import DEFAULT_TD_S, ControlLoop, Guards, Journal, Policy, checked_td, interval_of
from elastream.control.analyze import PATIENCE_S
from elastream.engine.clock import Clock, SteadyClock
from elastream.engine.driver.build import DriverInputs, make_driver, make_loop
from elastream.engine.driver.commit.housekeeping import Housekeeping
from elastream.engine.driver.lifecycle import RunLife
from elastream.engine.driver.opening import first_entry
from elastream.engine.driver.ports import Edges, Tick
from elastream.engine.driver.publish import Publisher
from elastream.engine.driver.resumed import in_words
from elastream.engine.driver.run_base import RunBase
from elastream.engine.driver.status_maker import StatusMaker
from elastream.engine.driver.tables import Tables, make_tables
from elastream.engine.handle import Run, RunHandle, RunListener
from elastream.engine.hosts.link import HostLink
from elastream.engine.measure.controller import RunController
from elastream.engine.measure.observer import RunObserver
from elastream.engine.measure.plant import EnginePlant
from elastream.engine.measure.totals import Surroundings
from elastream.engine.operations.attendant import Attendant
from elastream.engine.tape.recording import (
    TapedBase,
    TapedClock,
    TapedHousekeeping,
    TapedLife,
    TapedLink,
    TapedMachines,
    TapeRecorder,
)
from elastream.engine.tape.tape import VERSION, Header
from elastream.engine.worker.base_id import base_id
from elastream.engine.worker.program import Program
from elastream.errors import SettingError
from elastream.fleet.machines import Machines
from elastream.lanes.entries import Entry
from elastream.lanes.lease import Machine
from elastream.lanes.store import Store
from elastream.policies import check_policy, make_policy, with_targets
from elastream.policies.model_library import remember
from elastream.settings import Settings
from elastream.state.columns import KeyedColumns
from elastream.topology import Graph
from elastream.topology.check import check_engine_groupings
from elastream.workload.replay import Replay

H = TypeVar("H", bound=RunHandle)
log = logging.getLogger("elastream.run")

STOP_S = 4.0
"""How long the tick's thread may take to end when a run could not be started."""


@dataclass(frozen=True)
class Plan:
    """How a run shall be: what `run` is told besides the topology and the place."""

    settings: Settings = field(default_factory=Settings)
    policy: str | Policy | None = None
    td_s: float | None = None
    """Seconds between two decisions; None: the policy's own pace, else the default."""
    guards: Guards = field(default_factory=Guards)
    benchmark_s: float = 2.0
    discard: tuple[str, ...] = ()
    models: str | None = None
    """Where models of policies that learn are kept, besides the base."""
    latency_ms: float | None = None
    """Targets of the user, for policies that take them."""
    per_second: float | None = None
    listeners: Iterable[RunListener | Callable[[Tick], object]] = ()
    """Called from the first tick on."""
    record: str | None = None
    """A new file in which everything that reaches the driver is recorded, to make the same ticks again."""

    def __post_init__(self) -> None:
        checked_td(self.td_s)
        check_policy(self.policy)
        if not isinstance(self.policy, str) and (self.latency_ms, self.per_second) != (None, None):
            got = "none" if self.policy is None else f"{type(self.policy).__name__}, an object: give it its targets"
            raise SettingError(
                f"latency_ms and per_second are for a policy by its name, got {got}; policy='autrascale'"
            )
        if self.benchmark_s < 0:
            raise SettingError(f"benchmark_s must be 0 or more, got {self.benchmark_s}; 0 means no benchmark")

    def chosen_policy(self, graph: Graph) -> Policy | None:
        chosen = self.policy
        if isinstance(chosen, str):
            chosen = make_policy(with_targets(chosen, latency_ms=self.latency_ms, per_second=self.per_second))
        if chosen is not None:
            # Only what is replayed can be foreseen.
            chosen.foresee(tuple(s.source.arrivals for s in graph.sources if isinstance(s.source, Replay)))
        return chosen


@dataclass(frozen=True)
class Parts:
    """The parts of a run that its edges are connected to."""

    program: Program
    store: Store
    tables: Tables


class Connected(Protocol):
    """What Spark serves of a graph."""

    @property
    def edges(self) -> Edges: ...

    def start(self, life: RunLife) -> None: ...

    def stop_reading(self) -> None:
        """Read no more from streaming sources in this run."""
        ...

    def close(self) -> None: ...

    def unread(self) -> dict[str, int]:
        """Per streaming source, the tuples that are there and not read yet."""
        ...

    def lag(self) -> dict[str, dict[str, int]]: ...


def _in_thread(tick: Callable[[], None]) -> None:
    threading.Thread(target=tick, name="elastream-ticks", daemon=True).start()


def assemble(
    graph: Graph,
    store: Store,
    plan: Plan,
    hosts: HostLink,
    start_hosts: Callable[[Program], object],
    handle_of: Callable[[Run], H],
    *,
    machines: Machines,
    slots: Callable[[], int],
    connect: Callable[[Parts], Connected] | None = None,
    clock: Clock | None = None,
    machine: Machine | None = None,
    identity: str | None = None,
    launch: Callable[[Callable[[], None]], object] | None = None,
    inline: bool = False,
) -> H:
    """Take the base, connect the edges, start the hosts, attach the listeners and start the tick's thread.

    A simulation has its own `clock`, `machine`, `identity` (32 hexadecimal digits that no other driver has) and `launch`, which
    runs the tick. With `inline` everything else runs in the tick's thread, too: for virtual time. Such a run writes no status and no
    log file, and takes no requests.
    """
    settings, clock = plan.settings, clock or SteadyClock()
    tape = _tape(plan, connect)
    base = TapedBase(tape, store, clock, machine, identity) if tape else RunBase(store, clock, machine, identity)
    try:
        check_engine_groupings(graph)
        policy = plan.chosen_policy(graph)
        td_s = interval_of(policy, plan.td_s)
        with base.opening():
            opening = first_entry(
                graph, base.state, plan.discard, str(store), policy.start if policy else None, clock.wall_s()
            )
            name = base_id(store, identity)
    except BaseException:
        hosts.close()
        raise
    attendant: Attendant | None = None
    failed_before = {name: counts.failed for name, counts in base.state.totals.items()}
    resumed = in_words(graph, base.state, str(store))
    if resumed:
        log.warning("%s", resumed)
    try:
        states = base.state.states | opening.states
        columns = {name: KeyedColumns.decode(text).state.names for name, text in states.items()}
        program = Program(graph, settings, store.uri, name, columns, appends=store.appends)
        tables = make_tables(graph, settings, base.state, td_s)
        connected = connect(Parts(program, store, tables)) if connect else None

        def surroundings() -> Surroundings:
            return Surroundings(slots(), connected.unread(), connected.lag()) if connected else Surroundings(slots())

        timing_s = plan.benchmark_s if policy is not None else 0.0
        around = _ports(graph, settings, base, hosts, machines, clock, opening, tape, inline=inline)
        if connected is not None:
            around = replace(around, edges=connected.edges)
        if tape is not None:
            snapshot = base.state.snapshot()
            tape.begin(Header(VERSION, graph.name, td_s, settings, snapshot, opening, timing_s))
        life, housekeeping = around.life, around.housekeeping
        driver = make_driver(around, tables)
        maker = StatusMaker(driver, life, clock)
        observer = RunObserver(graph, settings.queues.q_size, clock, maker.make(), surroundings)
        control = None
        if policy is not None:
            control = ControlLoop(
                EnginePlant(graph, observer, life),
                policy,
                td_s=plan.td_s,
                guards=plan.guards,
                journal=Journal(store, quiet_s=DEFAULT_TD_S if plan.td_s is None and td_s < DEFAULT_TD_S else 0.0),
                clock=clock.wall_s,
                patience_s=math.inf if inline else PATIENCE_S,
            )
            keep_models = remember(policy, graph.name, [store.uri, *([plan.models] if plan.models else [])])
            if keep_models is not None:
                control.on_decision.append(keep_models)
        controller = RunController(observer, control, inline=inline)
        publisher = Publisher(maker, clock, controller.deliver, controller.due_s)
        loop = make_loop(around, driver, publisher, opening, timing_s=timing_s)
        made = Run(
            graph,
            store,
            settings,
            td_s,
            base,
            life,
            driver,
            observer,
            controller,
            publisher,
            housekeeping,
            hosts,
            failed_before,
            resumed,
            connected,
        )
        handle = handle_of(made)
        if not inline:
            attendant = Attendant(store, resumed)
            made.log_file = attendant.log_path
        start_hosts(program)
        with life.not_begun(driver.requests.carry_out):
            for listener in (*([attendant] if attendant else ()), *plan.listeners):
                handle.listen(listener)
        (launch or _in_thread)(partial(tape.run, loop.run) if tape else loop.run)
        if attendant is not None:
            attendant.begin()
        if connected is not None:
            try:
                connected.start(life)
            except BaseException:
                life.stop()
                life.wait(STOP_S)
                raise
    except BaseException:
        if attendant is not None:
            attendant.close()
        hosts.close()
        base.close()
        raise
    return handle


def _tape(plan: Plan, connect: object) -> TapeRecorder | None:
    if plan.record is None:
        return None
    if connect is not None:
        raise SettingError(
            "record: an application with connectors of Spark cannot be recorded; replay its input instead"
        )
    return TapeRecorder(plan.record)


def _ports(
    graph: Graph,
    settings: Settings,
    base: RunBase,
    link: HostLink,
    machines: Machines,
    clock: Clock,
    opening: Entry,
    tape: TapeRecorder | None,
    *,
    inline: bool,
) -> DriverInputs:
    """The ports of the driver, recorded if there is a tape."""
    outputs = tuple(opening.outputs or ())
    if tape is None:
        housekeeping = Housekeeping(base.store, settings, outputs, inline=inline)
        return DriverInputs(graph, settings, base, link, machines, clock, RunLife(clock, link.wake), housekeeping)
    taped = TapedClock(clock, tape)
    life = TapedLife(taped, link.wake, tape)
    return DriverInputs(
        graph,
        settings,
        base,
        TapedLink(link, tape, life),
        TapedMachines(machines, tape),
        taped,
        life,
        TapedHousekeeping(tape, base.store, settings, outputs, inline=inline),
    )
