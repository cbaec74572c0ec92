"""Figures 3 to 5 of the multi-level paper: what tasks, executors and workers bear, on the simulator."""

from dataclasses import replace
from typing import Any

import pytest

from elastream.errors import SettingError
from elastream.report.scores.metrics import healthy_until
from elastream.report.series import Sample
from elastream.report.write import make_report
from elastream_lab.bench.suites.suite import load_suite
from elastream_lab.bench.suites.suite_model import simulator_of


def found(figure: int, *names: str) -> dict[str, dict[str, Any]]:
    suite = load_suite(f"multi-level-fig-{figure}")
    plant = simulator_of(suite, None, "ticks")
    done = {}
    for scenario in suite.scenarios:
        if scenario.name in names:
            run = plant.simulate(scenario)
            done[scenario.name] = make_report(run.record, run.events)
    assert len(done) == len(names)
    return done


def bears(report: dict[str, Any]) -> float:
    return float(report["congested"]["input_per_s"])


def test_tasks_do_not_change_what_executors_bear() -> None:
    few, many = found(3, "1-4-4", "1-4-64").values()
    assert bears(many) == pytest.approx(bears(few), rel=0.05)


def test_executors_help_up_to_the_number_of_cores() -> None:
    theirs = {"1-1-1": 5000, "1-2-2": 10000, "1-4-4": 20000, "1-8-8": 20000}
    for name, report in found(4, *theirs).items():
        assert bears(report) == pytest.approx(theirs[name], rel=0.06), name


def test_in_the_engine_hosts_help_and_threads_that_compute_do_not() -> None:
    one, two, threads = found(4, "engine, 1 host", "engine, 2 hosts", "engine, 1 host, 8 replicas").values()
    assert bears(two) == pytest.approx(2 * bears(one), rel=0.1)
    assert bears(threads) == pytest.approx(bears(one), rel=0.05)


def test_more_workers_are_out_of_memory_sooner_and_bear_no_more() -> None:
    names = ("1-4-4", "2-4-4", "4-4-4", "1-4-4, workers without memory", "4-4-4, workers without memory")
    done = found(5, *names)
    crashed = {name: report["crashes"][0]["t_s"] for name, report in done.items()}
    assert crashed["4-4-4"] < crashed["2-4-4"] < crashed["1-4-4"]
    # It is the memory of the workers that does it.
    assert crashed["4-4-4, workers without memory"] == crashed["1-4-4, workers without memory"]
    assert len({bears(report) for report in done.values()}) == 1


@pytest.mark.parametrize(
    ("scenarios", "said"),
    [
        ({"9-9-9": {}}, "simulated: scenarios: unknown key '9-9-9'"),
        ({"2-4-4": {"times": {}}}, "scenarios: 2-4-4: unknown key 'times'; there are system, fidelity, cluster"),
        ({"2-4-4": {"system": "flink"}}, "scenarios: 2-4-4: system must be spark or storm"),
        ({"2-4-4": {"cluster": {"startup": {"processes": 0}}}}, "startup: processes must be more than 0, got 0"),
        ({"2-4-4": 3}, "scenarios: 2-4-4: expected keys with values, got 3"),
    ],
)
def test_a_scenario_whose_model_cannot_be_is_refused(scenarios: dict[str, Any], said: str) -> None:
    suite = load_suite("multi-level-fig-5")
    with pytest.raises(SettingError, match=said):
        simulator_of(replace(suite, simulated={**(suite.simulated or {}), "scenarios": scenarios}), None, "ticks")


def test_an_operator_is_healthy_until_it_processes_too_little_of_what_it_receives() -> None:
    counts = [(100, 100), (120, 110), (140, 110), (160, 160)]
    samples = [
        Sample(10.0 * (n + 1), 10.0, received, processed, 0, 0, 1, 0.0, 0, 0, 0)
        for n, (received, processed) in enumerate(counts)
    ]
    assert healthy_until(samples, 10.0) == (20.0, 14.0)
    assert healthy_until(samples[:2], 10.0) is None and healthy_until([], 10.0) is None
