"""The simulator against Spark at small scale: a run gives the profile, and the simulation of the same run must agree with it."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median, stdev

import numpy as np
import pytest
from pyspark.sql import SparkSession

from elastream.apps.load import load_app
from elastream.bench.calibrate import READS_AT, TickCost, Wait, fit_machine, fit_waits, operator_times
from elastream.bench.fidelity import compare
from elastream.bench.runner import Progress, run_suite
from elastream.bench.scenario import Scenario
from elastream.bench.simulator_plant import SimulatorPlant
from elastream.bench.spark_plant import SparkPlant
from elastream.bench.suite import Suite
from elastream.engine import Handle
from elastream.engine.executors import capacity_of
from elastream.engine.measure import Tick
from elastream.scoring import Record
from elastream.simulator.profile import Machine, Profile

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
    warm, cores = ticks[WARM_TICKS:], capacity_of(spark)().cores
    overhead_s = [tick.overhead_s for tick in warm]
    machine = Machine(cores, median(overhead_s), 0.0, 0.0, stdev(overhead_s) / median(overhead_s), READS_AT, 3.0)
    profile = Profile(machine, {"tweets": operator_times(graph, warm)})
    # The times that were measured have the added ones in them.
    simulator, same = SimulatorPlant(profile), replace(scenario, service_ms=None)
    (simulated,) = run_suite(Suite("simulator", "simulated", (same,)), simulator, tmp_path / "simulator", print)
    found = compare(measured, simulated)
    assert found.replicas >= 0.8, found
    assert abs(found.processed) <= 0.01, found
    assert abs(found.saved) <= 0.1, found
    assert abs(found.latency) <= 0.4, found


def test_what_a_tick_costs_is_found_though_long_ticks_find_more_tuples() -> None:
    noise = np.random.default_rng(3)

    def run(tasks: int, rate: float, base_s: float = 0.1) -> list[TickCost]:
        costs = []
        for _ in range(80):
            overhead_s = (base_s + 0.004 * tasks + 2e-4 * rate * 0.3) * noise.lognormal(0, 0.2)
            costs.append(TickCost(overhead_s, tasks, int(rate * (overhead_s + 0.1))))
        return costs

    runs = [run(5, rate) for rate in (20.0, 125.0, 250.0, 250.0, 400.0)]
    machine = fit_machine(runs, [run(tasks, 1200.0, 0.06) for tasks in (5, 13, 25, 40)], 2, 3.0)
    assert machine.base_s == pytest.approx(0.1, rel=0.15)
    assert machine.task_s == pytest.approx(0.004, rel=0.25)
    assert machine.spread == pytest.approx(0.2, abs=0.04)


def test_what_waits_cost_is_told_from_what_lanes_cost() -> None:
    runs = [Wait(0.0002 + 0.0015 * lanes, lanes) for lanes in (0.03, 0.03, 0.1, 0.12, 0.25)]
    assert fit_waits(runs) == pytest.approx((0.0002, 0.0015), rel=1e-2)
    # In one run the machine did something else.
    assert fit_waits([*runs[:3], replace(runs[3], excess_s=0.003), runs[4]]) == pytest.approx((0.0002, 0.0015), rel=0.3)
    # A machine cannot wake a thread before its time.
    assert fit_waits([Wait(-0.0001, 0.1), Wait(-0.0001, 0.2)]) == pytest.approx((0.0, 0.0), abs=1e-6)
