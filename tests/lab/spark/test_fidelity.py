"""The simulator against Spark at small scale: a run gives the profile, and the simulation of the same run must agree with it."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from elastream.applications.load import load_app
from elastream.capacity.fit import Costs, fit_late, fit_line, fit_machine, operator_times
from elastream.engine import Handle
from elastream.engine.driver.ports import Tick
from elastream.engine.spark.executors import capacity_of
from elastream.report import Record
from elastream.simulator.profile import Machine, OperatorTimes, Profile
from elastream_lab.bench.suites.fidelity import compare
from elastream_lab.bench.suites.runner import Progress, run_suite
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.simulator_plant import SimulatorPlant
from elastream_lab.bench.suites.spark_plant import SparkPlant
from elastream_lab.bench.suites.suite import Suite

WARM_S = 2.0


def test_a_simulated_run_is_like_the_run_it_was_calibrated_with(spark: SparkSession, tmp_path: Path) -> None:
    workload = "ramp:start=30,end=200,seconds=16"
    scenario = Scenario("small", workload=workload, policy="psps", td_s=2.0, service_ms=10.0, pool=3, r_over=12)
    ticks: list[Tick] = []
    turns: list[float] = []

    def watch(handle: Handle, record: Record, on: Callable[[float], bool], progress: Progress) -> None:
        handle.subscribe(ticks.append)
        handle.subscribe(lambda tick: turns.append(handle.status.tick_cpu_s))
        began = time.monotonic()
        while handle.active and on(time.monotonic() - began):
            handle.await_end(0.2)

    (measured,) = run_suite(Suite("spark", "measured", (scenario,)), SparkPlant(watch), tmp_path / "spark", print)
    graph = load_app("tweets", scenario.arrivals(), {"database": str(tmp_path / "unused"), "pool": 3})
    warm = [tick for tick in ticks if tick.ended_s > ticks[0].ended_s + WARM_S]
    machine = Machine(capacity_of(spark)().cores, float(np.median(turns)), 0.0, 0.0005, 1e-5, 0.0005, 3.0)
    profile = Profile(machine, {"tweets": operator_times(graph, warm)})
    # The times that were measured have the added ones in them.
    simulator, same = SimulatorPlant(profile), replace(scenario, service_ms=None)
    (simulated,) = run_suite(Suite("simulator", "simulated", (same,)), simulator, tmp_path / "simulator", print)
    found = compare(measured, simulated)
    assert found.replicas >= 0.7, found
    assert abs(found.processed) <= 0.01, found
    assert abs(found.saved) <= 0.15, found
    # How long a tuple takes depends on what else the machine does; the model has no reason to be slower.
    assert found.latency <= 0.5, found


def test_what_a_work_costs_is_told_from_what_a_tuple_costs() -> None:
    noise = np.random.default_rng(3)
    rows = noise.integers(1, 30, 500).astype(np.float64)
    seconds = (0.0007 + 0.0001 * rows) * noise.lognormal(0, 0.1, 500)
    # Now and then the machine did something else.
    seconds[::50] *= 20
    assert fit_line(rows, seconds) == pytest.approx((0.0007, 0.0001), rel=0.1)
    assert fit_line(np.full(9, 2.0), np.full(9, 0.01)) == (0.0, 0.005)
    assert fit_line(np.zeros(0), np.zeros(0)) == (0.0, 0.0)


def test_the_machine_is_known_from_works_of_few_and_of_many_tuples() -> None:
    def costs(works: int, tuples: int, per_turn: float) -> Costs:
        return Costs(works, tuples, 0.0005 * works + 2e-5 * tuples, per_turn, 0.0002 + 0.0001 * per_turn)

    machine = fit_machine([costs(100, 120, 1.0), costs(500, 5000, 1.5), costs(800, 90_000, 4.0)], 2)
    assert machine.cores == 2
    assert (machine.work_s, machine.tuple_s) == pytest.approx((0.0005, 2e-5), rel=0.01)
    assert (machine.turn_s, machine.receipt_s) == pytest.approx((0.0002, 0.0001), rel=0.01)


def test_a_wait_is_never_too_early() -> None:
    quick, slow = OperatorTimes(0.0001, 1.0, 0.0), OperatorTimes(0.0054, 0.1, 0.0)
    assert fit_late({"a": slow}, {"a": quick}, 0.005) == pytest.approx(0.0003)
    assert fit_late({"a": replace(slow, service_s=0.0049)}, {"a": quick}, 0.005) == 0.0
    # A source does not wait.
    assert fit_late({"in": quick}, {"in": quick}, 0.005) == 0.0
