"""The model that a suite brings along, for suites that run on the simulator only: `simulated` in its file."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from elastream.bench.simulator_plant import SimulatorPlant
from elastream.bench.suite import Suite
from elastream.errors import SettingError
from elastream.simulator.cluster import parse_cluster
from elastream.simulator.profile import OperatorTimes, load_profile

KEYS = ("system", "cluster", "times")
TIMES = {"service_ms": 0.0, "cpu": 1.0, "spread": 0.0}
"""Of an operator, and what they are when they are not said; besides, `passes`."""


def simulator_of(suite: Suite, profile: str | None, fidelity: str) -> SimulatorPlant:
    """A plant with the system, the cluster and the times of the suite; what it does not say is as calibrated."""
    said, where = dict(suite.simulated or {}), f"suite {suite.name}: simulated"
    _check(said, KEYS, where)
    system = said.get("system", "spark")
    if system not in ("spark", "storm"):
        raise SettingError(f"{where}: system must be spark or storm, got {system!r}")
    try:
        cluster = parse_cluster(said.get("cluster", {}))
    except SettingError as error:
        raise SettingError(f"{where}: cluster: {error}") from None
    known = load_profile(profile)
    times = {app: _times(its, f"{where}: times: {app}") for app, its in _mapping(said.get("times", {}), where).items()}
    return SimulatorPlant(replace(known, apps=known.apps | times), system, cluster=cluster, fidelity=fidelity)


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
        found[name] = OperatorTimes(given["service_ms"] / 1e3, given["cpu"], given["spread"], shares)
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
