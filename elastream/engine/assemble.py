"""From a graph, a base and hosts to a run: the parts are made and put together here, and nowhere else."""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from elastream import rules
from elastream.control import DEFAULT_TD_S, ControlLoop, Guards, Journal, Policy, checked_td, interval_of
from elastream.engine.clock import Clock, SteadyClock
from elastream.engine.handle import Run, RunHandle, RunListener
from elastream.engine.hosts.link import HostLink
from elastream.engine.measure.observer import RunObserver
from elastream.engine.measure.plant import EnginePlant
from elastream.engine.measure.totals import HostScene, Scene
from elastream.engine.tick.estimates import Estimates
from elastream.engine.tick.lane_loads import LaneLoads
from elastream.engine.tick.life import RunLife
from elastream.engine.tick.loop import TickLoop
from elastream.engine.tick.opening import first_entry
from elastream.engine.tick.planner import Planner
from elastream.engine.tick.ports import Edges, Tick
from elastream.engine.tick.resumed import in_words
from elastream.engine.tick.run_base import RunBase
from elastream.engine.tick.turns import Turns
from elastream.engine.worker.base_id import base_id
from elastream.engine.worker.program import Program
from elastream.errors import SettingError
from elastream.fleet.machines import Machines
from elastream.lanes.lease import Machine
from elastream.lanes.state import LedgerState
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
    state: LedgerState
    estimates: Estimates
    planner: Planner
    loads: LaneLoads


class Connected(Protocol):
    """What Spark serves of a graph."""

    @property
    def edges(self) -> Edges: ...

    def start(self, life: RunLife) -> None: ...

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
) -> H:
    """Take the base, connect the edges, start the hosts, attach the listeners and start the tick's thread.

    A simulation has its own `clock`, `machine`, `identity` (32 hexadecimal digits that no other driver has) and `launch`, which
    runs the tick.
    """
    settings, clock = plan.settings, clock or SteadyClock()
    base = RunBase(store, clock, machine, identity)
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
    failed_before = {name: counts.failed for name, counts in base.state.totals.items()}
    resumed = in_words(graph, base.state, str(store))
    if resumed:
        log.warning("%s", resumed)
    try:
        states = base.state.states | opening.states
        columns = {name: KeyedColumns.decode(text).state.names for name, text in states.items()}
        program = Program(graph, settings, store.uri, name, columns, appends=store.appends)
        estimates = Estimates(base.state.estimates)
        loads = LaneLoads(graph, base.state, estimates, td_s, settings.q_size)
        planner = Planner(graph, settings, base.state, estimates, loads)
        connected = connect(Parts(program, store, base.state, estimates, planner, loads)) if connect else None

        def scene() -> Scene:
            waits: dict[str, bool] = {operator.name: not planner.computes(operator.name) for operator in graph.served}
            unread = planner.replays.unread(clock.wall_s())
            # Any thread may be here while the tick's adds and removes hosts: a copy is made in one step, a loop is not.
            hosts_now = dict(planner.roster.hosts)
            return Scene(
                base.state,
                estimates.service_s,
                unread | (connected.unread() if connected else {}),
                slots(),
                waits,
                connected.lag() if connected else {},
                {
                    host: HostScene(f"{seats.machine}/{seats.executor}", seats.usage)
                    for host, seats in hosts_now.items()
                },
                planner.roster.home,
                lambda service_s: rules.full_queue(settings.q_size, service_s),
                turns.fleet.look(),
            )

        observer = RunObserver(graph, loads, td_s, clock, scene)
        life = RunLife(clock, hosts.wake)
        edges = connected.edges if connected else None
        turns = Turns(
            graph,
            settings,
            base,
            estimates,
            planner,
            hosts,
            machines,
            observer,
            clock,
            life,
            outputs=tuple(opening.outputs or ()),
            edges=edges,
        )
        loop = TickLoop(
            graph,
            settings,
            base,
            planner,
            turns,
            hosts,
            clock,
            life,
            first_entry=opening,
            edges=edges,
            time_for_s=plan.benchmark_s if policy is not None else 0.0,
        )
        observer.state_moves = lambda: turns.mover.receipts
        observer.redirections = lambda: turns.redirector.records
        if policy is not None:
            observer.control = ControlLoop(
                EnginePlant(observer, life.resize, turns.mover.place, turns.pause, turns.discard, turns.fleet),
                policy,
                td_s=plan.td_s,
                guards=plan.guards,
                journal=Journal(store, quiet_s=DEFAULT_TD_S if plan.td_s is None and td_s < DEFAULT_TD_S else 0.0),
                clock=clock.wall_s,
            )
            keep_models = remember(policy, graph.name, [store.uri, *([plan.models] if plan.models else [])])
            if keep_models is not None:
                observer.control.on_decision.append(keep_models)
        made = Run(
            graph, store, settings, td_s, base, life, turns, planner, observer, hosts, failed_before, resumed, connected
        )
        handle = handle_of(made)
        start_hosts(program)
        with life.not_begun():
            for listener in plan.listeners:
                handle.listen(listener)
        (launch or _in_thread)(loop.run)
        if connected is not None:
            try:
                connected.start(life)
            except BaseException:
                life.stop()
                life.wait(STOP_S)
                raise
    except BaseException:
        hosts.close()
        base.close()
        raise
    return handle
