"""Scenarios on Spark: one session for all of a suite."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from elastream.applications.load import load_app
from elastream.engine import Handle, session, start
from elastream.engine.recording import Recorder, events_of
from elastream.errors import SettingError
from elastream.report import Record, write_report
from elastream.topology import Graph
from elastream.workload.replay import Replay
from elastream_lab.bench.suites.runner import Progress, models_of
from elastream_lab.bench.suites.scenario import Scenario, check_storm_keys, options_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRAIN_S = 15.0
"""How long a run may go on after its last tuple was due; one that is further behind is stopped with what still waits."""

START_S = 12.0
"""What a scenario takes besides its input, about."""

Watch = Callable[[Handle, Record, Callable[[float], bool], Progress], None]
"""Shows a run until it is over, or until the function of the seconds says no more."""


class SparkPlant:
    """`most_lanes` is what the session has to run side by side: `lanes_of` all graphs to come."""

    name = "spark"

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._lanes = 0
        self._spark: SparkSession | None = None

    def seconds(self, scenario: Scenario) -> float:
        check_storm_keys(scenario)
        with tempfile.TemporaryDirectory(prefix="elastream-results-") as results:
            graph = _graph(scenario, results)
        self._lanes = max(self._lanes, sum(o.replicas.most for o in graph.served) + len(graph.sources))
        return START_S + _input_s(scenario, graph)

    def run(self, scenario: Scenario, folder: Path, progress: Progress) -> None:
        if self._spark is None:
            self._spark = session()
        base = tempfile.mkdtemp(prefix="elastream-")
        try:
            graph = _graph(scenario, base)
            recorder = Recorder(graph)
            recorder.record.window_s = scenario.window_s
            limit_s = scenario.seconds or _input_s(scenario, graph) + DRAIN_S
            with start(
                graph,
                f"{base}/base",
                spark=self._spark,
                policy=scenario.policy,
                td_s=scenario.td_s,
                guards=scenario.guards(),
                settings=scenario.settings(),
                models=models_of(scenario, folder),
                listeners=[recorder],
            ) as handle:
                self._watch(handle, recorder.record, lambda elapsed: elapsed < limit_s, progress)
            write_report(recorder.record, events_of(handle.audit()), folder, scenario.r_over)
        finally:
            shutil.rmtree(base, ignore_errors=True)


def _graph(scenario: Scenario, results: str) -> Graph:
    database = scenario.database or f"{results}/results.sqlite"
    return load_app(scenario.app, scenario.arrivals(), options_of(scenario, database))


def _input_s(scenario: Scenario, graph: Graph) -> float:
    found = [source.source.arrivals.seconds for source in graph.sources if isinstance(source.source, Replay)]
    if scenario.seconds is None and not found:
        raise SettingError(f"scenario {scenario.name!r}: its sources never end; say for how many seconds it runs")
    return min(scenario.seconds or float("inf"), max(found, default=float("inf")))
