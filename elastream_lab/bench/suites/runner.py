"""Runs a suite: scenario after scenario, each with its report; what an earlier run finished is kept."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from elastream import __version__
from elastream.codec import to_plain
from elastream_lab.bench.suites.outcomes import Outcome, read_outcome, with_regret, write_outcomes
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.suite import Suite

DONE = "scenario.json"
"""Written when a run is over. Whatever it does not agree with is run again."""


MODELS = "models"
"""Where scenarios keep what their policies learn, in a directory for each name."""


class Plant(Protocol):
    """What a scenario runs on."""

    name: str

    def seconds(self, scenario: Scenario) -> float:
        """How long it is expected to take; also finds what is wrong with it before anything runs."""
        ...

    def run(self, scenario: Scenario, folder: Path, progress: "Progress") -> None:
        """Run it and write its report there."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far a suite has come when a scenario begins."""

    number: int
    of: int
    label: str
    done_s: float
    """Expected seconds of the scenarios before it, and so below."""
    its_s: float
    left_s: float
    """Of those after it."""


def run_suite(
    suite: Suite, plant: Plant, folder: Path, say: Callable[[str], None], *, again: bool = False
) -> list[Outcome]:
    """Every scenario's report in a directory of its own, and the tables, the picture and the page of all of them.

    These are written anew after each scenario, so that a run that is stopped leaves what it has.
    """
    expected = {scenario.name: plant.seconds(scenario) for scenario in suite.scenarios}
    places = _places(suite)
    kept = [] if again else [s.name for s in suite.scenarios if _is_done(s, plant, folder / places[s.name])]
    if kept:
        say(f"kept from an earlier run: {', '.join(kept)}; --again runs them anew")
    left = [scenario for scenario in suite.scenarios if scenario.name not in kept]
    if not kept:
        shutil.rmtree(folder / MODELS, ignore_errors=True)
    for position, scenario in enumerate(left):
        its = [expected[s.name] for s in left]
        progress = Progress(
            position + 1, len(left), scenario.name, sum(its[:position]), its[position], sum(its[position + 1 :])
        )
        place = folder / places[scenario.name]
        shutil.rmtree(place, ignore_errors=True)
        plant.run(scenario, place, progress)
        (place / DONE).write_text(json.dumps(_fingerprint(scenario, plant), indent=2) + "\n", encoding="utf-8")
        if position + 1 < len(left):
            _write(suite, folder, places)
    return _write(suite, folder, places)


def _write(suite: Suite, folder: Path, places: dict[str, str]) -> list[Outcome]:
    there = [s.name for s in suite.scenarios if (folder / places[s.name] / DONE).is_file()]
    outcomes = [read_outcome(name, folder / places[name]) for name in there]
    workloads = [
        (s.app, s.workload, s.speed, s.scale, s.burst_s, s.spikes, s.seed, s.service_ms)
        for s in suite.scenarios
        if s.name in there
    ]
    outcomes = with_regret(outcomes, workloads)
    paper = {scenario.name: dict(scenario.paper) for scenario in suite.scenarios}
    write_outcomes(suite.name, suite.title, suite.note, outcomes, folder, paper, workloads, suite.columns)
    return outcomes


def models_of(scenario: Scenario, folder: Path) -> str | None:
    """The directory of what is learned, beside the scenario's own; None: nothing outlives it."""
    return None if scenario.models is None else str(folder.parent / MODELS / scenario.models)


def _is_done(scenario: Scenario, plant: Plant, place: Path) -> bool:
    try:
        written = json.loads((place / DONE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(written == _fingerprint(scenario, plant))


def _fingerprint(scenario: Scenario, plant: Plant) -> dict[str, Any]:
    return {"elastream": __version__, "plant": plant.name, **to_plain(scenario)}


def _places(suite: Suite) -> dict[str, str]:
    """A directory for each scenario, named after it as far as a file system takes it."""
    places: dict[str, str] = {}
    for scenario in suite.scenarios:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", scenario.name).strip("-.") or "scenario"
        taken = plain in places.values()
        places[scenario.name] = f"{plain}-{len(places) + 1}" if taken else plain
    return places
