"""Simulate an application: a graph, times of its operators and a policy enter; the record of a run leaves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from elastream.control import Guards, Policy
from elastream.errors import SettingError
from elastream.extensions import SYSTEMS, installed, load_installed
from elastream.policies import make_policy
from elastream.policies.model_library import remember
from elastream.settings import Settings
from elastream.simulator.cluster import Cluster
from elastream.simulator.engine_works import EngineTurns
from elastream.simulator.fidelity import Fidelity, System
from elastream.simulator.model import Model, Node, make_model
from elastream.simulator.profile import Machine, OperatorTimes, Profile, load_profile
from elastream.simulator.simulate import Simulated
from elastream.simulator.simulate import simulate as simulate_model
from elastream.simulator.state import Limits
from elastream.topology import App, Graph, Kind, graph_of
from elastream.workload import Arrivals, parse_workload
from elastream.workload.replay import Replay, with_arrivals

DRAIN_S = 15.0
"""How long a run may go on after its last tuple was due, as on Spark."""

MakeSystem = Callable[[Machine, Model, Settings, Cluster], System]
"""Makes the system that serves the tuples: the engine, or another one to compare with."""


OWN_SYSTEM = "spark"
"""Elastream's engine on Spark."""


@dataclass(frozen=True)
class Application:
    """A graph, and the measured times of its operators."""

    name: str
    graph: Graph
    times: Mapping[str, OperatorTimes]
    added_s: float = 0.0
    """Waited in every operator, for each tuple."""
    nodes: tuple[Node, ...] = ()
    """The machines it ran on, if the cluster names none. Empty: the machine of the profile."""


def simulate(
    app: App,
    trace: str | Arrivals | None = None,
    *,
    policy: str | Policy = "elastic",
    td_s: float | None = None,
    service_s: Mapping[str, float] | None = None,
    profile: Profile | None = None,
    settings: Settings | None = None,
    guards: Guards | None = None,
    cluster: Cluster | None = None,
    seconds: float | None = None,
    seed: int = 0,
) -> Simulated:
    """Run an application on a model, in virtual time.

    `trace` drives its replay sources: a name, a file, a shape or arrivals; None: their own. `service_s` gives the seconds
    per tuple of operators that no profile knows. The same seed gives the same run.
    """
    graph = graph_of(app)
    if trace is not None:
        graph = with_arrivals(graph, parse_workload(trace) if isinstance(trace, str) else trace)
    profile = profile or load_profile(None)
    times = times_of(graph, profile, service_s or {})
    return simulate_application(
        Application(graph.name, graph, times),
        make_policy(policy) if isinstance(policy, str) else policy,
        profile.machine,
        td_s=td_s,
        settings=settings,
        guards=guards,
        cluster=cluster,
        seconds=seconds,
        seed=seed,
    )


def simulate_application(
    application: Application,
    policy: Policy,
    machine: Machine,
    *,
    td_s: float | None = None,
    settings: Settings | None = None,
    guards: Guards | None = None,
    cluster: Cluster | None = None,
    seconds: float | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    models: str | None = None,
    fidelity: Callable[..., Fidelity] = Fidelity,
    make_system: MakeSystem | None = None,
    on_progress: Callable[[float], None] = lambda now_s: None,
) -> Simulated:
    """`models`: a directory in which a policy that learns finds and keeps its models."""
    settings, cluster = settings or Settings(), cluster or Cluster()
    model, arrivals = model_of(application, machine, cluster)
    policy.foresee(arrivals)
    keep = remember(policy, model.graph.name, [models]) if models else None
    return simulate_model(
        model,
        (make_system or engine_system)(machine, model, settings, cluster),
        policy,
        td_s=td_s,
        seed=seed,
        seconds=seconds or max(each.seconds for each in arrivals) + DRAIN_S,
        guards=guards,
        limits=limits or limits_of(settings),
        cluster=cluster,
        fidelity=fidelity,
        on_progress=on_progress,
        on_entry=keep or (lambda entry: None),
    )


def model_of(application: Application, machine: Machine, cluster: Cluster) -> tuple[Model, tuple[Arrivals, ...]]:
    """The model, and what arrives at each source."""
    arrivals = arrivals_of(application.graph)
    keys, zipf = skew_of(application.graph, cluster)
    model = make_model(
        application.graph,
        application.times,
        arrivals,
        added_s=application.added_s,
        nodes=cluster.nodes or application.nodes or (Node(machine.cores),),
        keys=keys,
        zipf=zipf,
    )
    return model, tuple(arrivals.values())


def engine_system(machine: Machine, model: Model, settings: Settings, cluster: Cluster) -> System:
    """Elastream's engine, with the costs that were measured on a machine."""
    return EngineTurns(
        turn_s=machine.turn_s,
        receipt_s=machine.receipt_s,
        work_s=machine.work_s,
        tuple_s=machine.tuple_s,
        hop_s=machine.hop_s,
        cores=max(1, int(model.fixed.node_cores.sum())),
        slots=model.lanes,
        budget_s=settings.works.budget_s,
        max_budget_s=settings.works.max_budget_s,
        crowding=cluster.crowding,
        hosts=(cluster.startup.processes or 0) * len(model.nodes),
        thread_crowding=machine.thread_crowding,
        process_crowding=machine.process_crowding,
    )


def system_names() -> list[str]:
    """Systems that can be simulated: the engine, and those that installed packages add."""
    return [OWN_SYSTEM, *sorted(installed(SYSTEMS))]


def system_named(name: str) -> MakeSystem:
    """The function that makes a system of this name."""
    if name == OWN_SYSTEM:
        return engine_system
    if name not in installed(SYSTEMS):
        raise SettingError(f"system {name!r}: expected one of {', '.join(system_names())}")
    make: MakeSystem = load_installed(SYSTEMS, name)
    return make


def limits_of(settings: Settings) -> Limits:
    """Limits of queues and ages."""
    return Limits(settings.queues.q_size or 0, settings.queues.on_full == "drop", settings.queues.t_out_s or 0.0)


def arrivals_of(graph: Graph) -> dict[str, Arrivals]:
    """What arrives at each source of a graph."""
    arrivals: dict[str, Arrivals] = {}
    for source in graph.sources:
        if not isinstance(source.source, Replay):
            raise SettingError(f"app {graph.name!r}: source {source.name!r} is no replay; only those can be simulated")
        arrivals[source.name] = source.source.arrivals
    return arrivals


def times_of(graph: Graph, profile: Profile, service_s: Mapping[str, float]) -> Mapping[str, OperatorTimes]:
    """Times of all operators: given ones first, then those of the profile. Sources that nobody timed cost nothing."""
    known = profile.apps.get(graph.name, {})
    sources = {str(source.name) for source in graph.sources}
    names = [*sources, *(str(o.name) for o in graph.served if o.kind is not Kind.OUTPUT)]
    unknown = [name for name in service_s if name not in names]
    if unknown:
        raise SettingError(f"service_s: no operator {unknown[0]!r}; there are {', '.join(names)}")
    times: dict[str, OperatorTimes] = {}
    for name in names:
        if name in service_s:
            # One that waits for others takes no core.
            times[name] = OperatorTimes(service_s[name], cpu=0.0 if graph[name].waits else 1.0, spread=0.0)
        elif name in known:
            times[name] = known[name]
        elif name in sources:
            times[name] = OperatorTimes(SOURCE_S, cpu=1.0, spread=0.0)
        else:
            raise SettingError(
                f"app {graph.name!r}: nothing is known of operator {name!r}; give its seconds per tuple as "
                f"service_s={{{name!r}: 0.005}}, or a profile from: elastream calibrate"
            )
    return times


SOURCE_S = 1e-6
"""Seconds per tuple of a replay source that was not timed."""


def skew_of(graph: Graph, cluster: Cluster) -> tuple[int, float]:
    """How many keys there are and the exponent of their popularity: as the cluster says, else as a payload that knows it."""
    makes = [source.source.make for source in graph.sources if isinstance(source.source, Replay)]
    known = [make.skew for make in makes if hasattr(make, "skew")]
    return known[0] if known and not cluster.zipf else (cluster.keys, cluster.zipf)
