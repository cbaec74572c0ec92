"""The simulator against Spark at small scale: a run gives the profile, and the simulation of the same run must agree with it."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from elastream.apps.load import load_app
from elastream.bench.calibrate import fit_machine, operator_times, tick_cost
from elastream.bench.fidelity import compare
from elastream.bench.runner import Progress, run_suite
from elastream.bench.scenario import Scenario
from elastream.bench.simulator_plant import SimulatorPlant
from elastream.bench.spark_plant import SparkPlant
from elastream.bench.suite import Suite
from elastream.engine import Handle
from elastream.engine.measure import Tick
from elastream.engine.session import cores_of
from elastream.scoring import Record
from elastream.simulator.profile import Profile

WARM_TICKS = 5


@pytest.mark.parametrize(
    ("policy", "workload"),
    [("psps", "ramp:start=30,end=240,seconds=24"), ("static:replicas=1", "constant:per_second=40,seconds=12")],
)
def test_a_simulated_run_is_like_the_run_it_was_calibrated_with(
    spark: SparkSession, tmp_path: Path, policy: str, workload: str
) -> None:
    scenario = Scenario("small", workload=workload, policy=policy, td_s=2.0, service_ms=8.0, pool=3, r_over=12)
    ticks: list[Tick] = []

    def watch(handle: Handle, record: Record, on: Callable[[float], bool], progress: Progress) -> None:
        handle.subscribe(ticks.append)
        began = time.monotonic()
        while handle.active and on(time.monotonic() - began):
            handle.await_end(0.2)

    (measured,) = run_suite(Suite("spark", "measured", (scenario,)), SparkPlant(watch), tmp_path / "spark", print)
    graph = load_app("tweets", scenario.arrivals(), {"database": str(tmp_path / "unused"), "pool": 3})
    warm, cores = ticks[WARM_TICKS:], cores_of(spark)
    machine = fit_machine([tick_cost(graph, tick, cores) for tick in warm], cores, restart_s=3.0)
    profile = Profile(machine, {"tweets": operator_times(graph, warm)})
    # The times that were measured have the added ones in them.
    simulator, same = SimulatorPlant(profile), replace(scenario, service_ms=None)
    (simulated,) = run_suite(Suite("simulator", "simulated", (same,)), simulator, tmp_path / "simulator", print)
    found = compare(measured, simulated)
    assert found.replicas >= 0.8, found
    assert abs(found.processed) <= 0.01, found
    assert abs(found.saved) <= 0.1, found
    assert abs(found.latency) <= 0.4, found
