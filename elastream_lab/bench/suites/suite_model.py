"""The model that a suite brings along, for suites that run on the simulator only: `simulated` in its file."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elastream.errors import SettingError
from elastream.simulator.cluster import parse_cluster
from elastream.simulator.profile import OperatorTimes, Profile, load_profile
from elastream.simulator.simulate import Simulated
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.simulator_plant import FIDELITIES, SimulatorPlant
from elastream_lab.bench.suites.suite import Suite

if TYPE_CHECKING:
    from elastream_lab.bench.suites.runner import Progress

KEYS = ("system", "fidelity", "cluster", "times", "scenarios")
DIFFERING = ("system", "fidelity", "cluster")
"""What a scenario may have of its own."""
TIMES = {"service_ms": 0.0, "cpu": 1.0, "spread": 0.0, "bend": 0.0, "most_per_s": 0.0}
"""Of an operator, and what they are when they are not said; besides, `passes`."""


class SuitePlant:
    """The simulator with the model of each scenario."""

    name = "simulator"

    def __init__(self, usual: SimulatorPlant, own: Mapping[str, SimulatorPlant]) -> None:
        self._usual = usual
        self._own = own

    def seconds(self, scenario: Scenario) -> float:
        return self._of(scenario).seconds(scenario)

    def run(self, scenario: Scenario, folder: Path, progress: "Progress") -> None:
        self._of(scenario).run(scenario, folder, progress)

    def simulate(self, scenario: Scenario) -> Simulated:
        return self._of(scenario).simulate(scenario)

    def _of(self, scenario: Scenario) -> SimulatorPlant:
        return self._own.get(scenario.name, self._usual)


def simulator_of(suite: Suite, profile: str | None, fidelity: str | None) -> SuitePlant:
    """A plant with the system, the cluster and the times of the suite; what it does not say is as calibrated.

    `fidelity` is the user's; None: the suite's own.
    """
    said, where = dict(suite.simulated or {}), f"suite {suite.name}: simulated"
    _check(said, KEYS, where)
    known = load_profile(profile)
    times = {app: _times(its, f"{where}: times: {app}") for app, its in _mapping(said.pop("times", {}), where).items()}
    made = partial(_plant, replace(known, apps=known.apps | times), fidelity)
    own = {}
    for name, differing in _mapping(said.pop("scenarios", {}), f"{where}: scenarios").items():
        here = f"{where}: scenarios: {name}"
        _check({name: None}, tuple(scenario.name for scenario in suite.scenarios), f"{where}: scenarios")
        values = _mapping(differing, here)
        _check(values, DIFFERING, here)
        own[name] = made(_merged(said, values), here)
    return SuitePlant(made(said, where), own)


def _plant(profile: Profile, fidelity: str | None, said: Mapping[str, Any], where: str) -> SimulatorPlant:
    system = said.get("system", "spark")
    if system not in ("spark", "storm"):
        raise SettingError(f"{where}: system must be spark or storm, got {system!r}")
    chosen = fidelity or said.get("fidelity", "ticks")
    if chosen not in FIDELITIES:
        raise SettingError(f"{where}: fidelity must be {' or '.join(FIDELITIES)}, got {chosen!r}")
    try:
        cluster = parse_cluster(said.get("cluster", {}))
    except SettingError as error:
        raise SettingError(f"{where}: cluster: {error}") from None
    return SimulatorPlant(profile, system, cluster=cluster, fidelity=chosen)


def _merged(usual: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `own` come first, also inside of mappings."""
    both = {
        key: _merged(usual[key], value) if isinstance(value, dict) and isinstance(usual.get(key), dict) else value
        for key, value in own.items()
    }
    return {**usual, **both}


def _times(operators: object, where: str) -> dict[str, OperatorTimes]:
    found = {}
    for name, its in _mapping(operators, where).items():
        here = f"{where}: {name}"
        values = _mapping(its, here)
        _check(values, (*TIMES, "passes"), here)
        shares = _mapping(values.pop("passes", {}), here)
        for key, value in (values | shares).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise SettingError(f"{here}: {key} must be a number, 0 or more, got {value!r}")
        given = TIMES | values
        service_s = given["service_ms"] / 1e3
        bends = {key: given[key] for key in ("bend", "most_per_s")}
        found[name] = OperatorTimes(service_s, given["cpu"], given["spread"], shares, **bends)
    return found


def _check(values: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in values:
        if key not in keys:
            close = get_close_matches(str(key), keys, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(keys)}"
            raise SettingError(f"{where}: unknown key {key!r}; {hint}")


def _mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SettingError(f"{where}: expected keys with values, got {value!r}")
    return dict(value)
