"""Scenarios on the simulator: the same scenario, the same report, in virtual time."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from elastream.apps import BUILT_IN
from elastream.apps.load import load_app
from elastream.bench.runner import Progress, models_of
from elastream.bench.scenario import Scenario, check_storm_keys
from elastream.control import Guards, Policy
from elastream.errors import SettingError
from elastream.policies import make_policy
from elastream.policies.model_library import remember
from elastream.scoring import write_report
from elastream.settings import RESTART_S
from elastream.simulator.cluster import Cluster
from elastream.simulator.engine_works import EngineTurns
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Fidelity, System
from elastream.simulator.model import Model, Node, make_model
from elastream.simulator.profile import Machine, OperatorTimes, Profile
from elastream.simulator.simulate import Simulated, simulate
from elastream.simulator.state import Limits
from elastream.simulator.storm_steps import StormSteps
from elastream.topology import Graph
from elastream.workload import Arrivals
from elastream.workload.replay import Replay

DRAIN_S = 15.0
"""As on Spark: how long a run may go on after its last tuple was due."""

FINEST_STEP_S, COARSEST_STEP_S = 0.002, 0.05
"""Of a tuple-by-tuple system: half of its shortest service, within these."""


FIDELITIES: dict[str, Callable[..., Fidelity]] = {"ticks": Fidelity, "events": Events}
"""All lanes at once, or every tuple by itself."""


@dataclass(frozen=True)
class Application:
    """A graph, and what is known of its operators."""

    name: str
    graph: Graph
    times: Mapping[str, OperatorTimes]
    added_s: float = 0.0
    """Waited in every operator, for each tuple."""
    nodes: tuple[Node, ...] = ()
    """The machines it ran on, for a cluster that names none; none: the machine of the profile."""


class SimulatorPlant:
    """`system` is `spark`, the engine's turns, or `storm`, tuple by tuple."""

    name = "simulator"

    def __init__(
        self,
        profile: Profile,
        system: str = "spark",
        *,
        cluster: Cluster | None = None,
        fidelity: str = "ticks",
    ) -> None:
        self._profile = profile
        self._system = system
        self._cluster = cluster or Cluster()
        self._has_nodes = bool(self._cluster.nodes)
        if not self._has_nodes:
            self._cluster = replace(self._cluster, nodes=(Node(profile.machine.cores),))
        if self._cluster.restart_s is None:
            self._cluster = replace(self._cluster, restart_s=RESTART_S)
        self._fidelity = FIDELITIES[fidelity]

    def seconds(self, scenario: Scenario) -> float:
        self._model(self._application(scenario))
        # It takes hardly any time; what counts is which part of a suite is done.
        return 1.0

    def run(self, scenario: Scenario, folder: Path, progress: Progress) -> None:
        done = self.simulate(scenario, models=models_of(scenario, folder))
        done.record.window_s = scenario.window_s
        write_report(done.record, done.events, folder, scenario.r_over)

    def simulate(
        self,
        scenario: Scenario,
        on_progress: Callable[[float], None] = lambda now_s: None,
        models: str | None = None,
        policy: Policy | None = None,
        guards: Guards | None = None,
        application: Application | None = None,
    ) -> Simulated:
        """`models`: a directory in which a policy that learns finds and keeps its models. `policy`, `guards`, `application`: instead of the scenario's."""
        model, arrivals = self._model(application or self._application(scenario))
        policy = policy or make_policy(scenario.policy)
        tell(policy, arrivals)
        keep = remember(policy, model.graph.name, [models]) if models else None
        return simulate(
            model,
            system_of(self._system, self._profile.machine, model, scenario, self._cluster),
            policy,
            td_s=scenario.td_s,
            seed=scenario.seed,
            seconds=scenario.seconds or max(its.seconds for its in arrivals) + DRAIN_S,
            guards=guards or scenario.guards(),
            limits=limits_of(scenario),
            cluster=self._cluster,
            fidelity=self._fidelity,
            on_progress=on_progress,
            on_entry=keep or (lambda entry: None),
        )

    def _application(self, scenario: Scenario) -> Application:
        if self._system == "storm" and scenario.q_size and scenario.on_full == "wait":
            raise SettingError(
                "a simulated Storm has no senders that wait: on_full must be drop where there is a q_size"
            )
        if self._system != "storm":
            check_storm_keys(scenario)
        with tempfile.TemporaryDirectory(prefix="elastream-results-") as results:
            graph = load_app(scenario.app, scenario.arrivals(), _options(scenario, results))
        added_s = scenario.service_ms / 1e3 + self._profile.machine.late_s if scenario.service_ms else 0.0
        return Application(scenario.app, graph, self._profile.times(scenario.app), added_s)

    def _model(self, application: Application) -> tuple[Model, tuple[Arrivals, ...]]:
        graph, nodes = application.graph, () if self._has_nodes else application.nodes
        arrivals = arrivals_of(graph, application.name)
        keys, zipf = skew_of(graph, self._cluster)
        model = make_model(
            graph,
            application.times,
            arrivals,
            added_s=application.added_s,
            nodes=nodes or self._cluster.nodes,
            keys=keys,
            zipf=zipf,
        )
        return model, tuple(arrivals.values())


def limits_of(scenario: Scenario) -> Limits:
    settings = scenario.settings()
    return Limits(
        settings.q_size or 0,
        settings.on_full == "drop",
        settings.t_out_s or 0.0,
        scenario.in_flight or 0,
        scenario.spout_size or 0,
        scenario.acked == "first",
    )


def arrivals_of(graph: Graph, app: str) -> dict[str, Arrivals]:
    for source in graph.sources:
        if not isinstance(source.source, Replay):
            raise SettingError(f"app {app!r}: source {source.name!r} is no replay; only those can be simulated")
    return {source.name: source.source.arrivals for source in graph.sources}


def skew_of(graph: Graph, cluster: Cluster) -> tuple[int, float]:
    """How many keys there are and the exponent of their popularity: as the cluster says, else as a payload that knows it."""
    found = [source.source.make.skew for source in graph.sources if hasattr(source.source.make, "skew")]
    return found[0] if found and not cluster.zipf else (cluster.keys, cluster.zipf)


def system_of(name: str, machine: Machine, model: Model, scenario: Scenario, cluster: Cluster) -> System:
    settings = scenario.settings()
    cores = max(1, int(model.fixed.node_cores.sum()))
    if name == "storm":
        shortest_s = float(model.fixed.service_s.min())
        return StormSteps(min(max(shortest_s / 2, FINEST_STEP_S), COARSEST_STEP_S), cluster.crowding)
    return EngineTurns(
        turn_s=machine.turn_s,
        receipt_s=machine.receipt_s,
        work_s=machine.work_s,
        tuple_s=machine.tuple_s,
        hop_s=machine.hop_s,
        cores=cores,
        slots=model.lanes,
        budget_s=settings.budget_s,
        max_budget_s=settings.max_budget_s,
        crowding=cluster.crowding,
        hosts=(cluster.startup.processes or 0) * len(model.nodes),
        thread_crowding=machine.thread_crowding,
        process_crowding=machine.process_crowding,
    )


def tell(policy: Policy, arrivals: tuple[Arrivals, ...]) -> None:
    """A policy that foresees is told what will come."""
    foresee = getattr(policy, "foresee", None)
    if foresee is not None:
        foresee(arrivals)


def _options(scenario: Scenario, results: str) -> dict[str, object]:
    """Nothing is stored in a simulation, but an application wants to know where it would be."""
    options = scenario.app_options()
    if scenario.app in BUILT_IN:
        options["database"] = f"{results}/unused.sqlite"
    return options
