"""Scenarios on the simulator: the same scenario, the same report, in virtual time."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from elastream.applications.load import load_app
from elastream.control import Guards, Policy
from elastream.errors import SettingError
from elastream.policies import make_policy
from elastream.report import write_report
from elastream.settings import Settings
from elastream.simulator.application import Application, model_of, simulate_application, system_named
from elastream.simulator.cluster import Cluster
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Fidelity, System
from elastream.simulator.model import Model
from elastream.simulator.profile import Machine, Profile
from elastream.simulator.simulate import Simulated
from elastream.simulator.state import Limits
from elastream.simulator.storm_steps import StormSteps
from elastream_lab.bench.suites.runner import Progress, models_of
from elastream_lab.bench.suites.scenario import Scenario, check_storm_keys, options_of

FINEST_STEP_S, COARSEST_STEP_S = 0.002, 0.05
"""Of a tuple-by-tuple system: half of its shortest service, within these."""

FIDELITIES: dict[str, Callable[..., Fidelity]] = {"ticks": Fidelity, "events": Events}
"""All lanes at once, or every tuple by itself."""


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
        self._fidelity = FIDELITIES[fidelity]

    def seconds(self, scenario: Scenario) -> float:
        model, _ = model_of(self._application(scenario), self._profile.machine, self._cluster)
        system_named(self._system)(self._profile.machine, model, scenario.settings(), self._cluster)
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
        """`policy`, `guards` and `application`, if given, replace the scenario's."""
        return simulate_application(
            application or self._application(scenario),
            policy or make_policy(scenario.policy),
            self._profile.machine,
            td_s=scenario.td_s,
            settings=scenario.settings(),
            guards=guards or scenario.guards(),
            cluster=self._cluster,
            seconds=scenario.seconds,
            seed=scenario.seed,
            limits=limits_of(scenario),
            models=models,
            fidelity=self._fidelity,
            make_system=system_named(self._system),
            on_progress=on_progress,
        )

    def _application(self, scenario: Scenario) -> Application:
        if self._system != "storm":
            check_storm_keys(scenario)
        with tempfile.TemporaryDirectory(prefix="elastream-results-") as results:
            graph = load_app(scenario.app, scenario.arrivals(), options_of(scenario, f"{results}/unused.sqlite"))
        added_s = scenario.service_ms / 1e3 + self._profile.machine.late_s if scenario.service_ms else 0.0
        return Application(scenario.app, graph, self._profile.times(scenario.app), added_s)


def limits_of(scenario: Scenario) -> Limits:
    settings = scenario.settings()
    return Limits(
        settings.queues.q_size or 0,
        settings.queues.on_full == "drop",
        settings.queues.t_out_s or 0.0,
        scenario.in_flight or 0,
        scenario.spout_size or 0,
        scenario.acked == "first",
    )


def storm_system(machine: Machine, model: Model, settings: Settings, cluster: Cluster) -> System:
    """Storm: no tick, every lane works all the time."""
    if settings.queues.q_size and settings.queues.on_full == "wait":
        raise SettingError("a simulated Storm has no senders that wait: on_full must be drop where there is a q_size")
    shortest_s = float(model.fixed.service_s.min())
    return StormSteps(min(max(shortest_s / 2, FINEST_STEP_S), COARSEST_STEP_S), cluster.crowding)
