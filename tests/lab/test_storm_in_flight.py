"""A simulated Storm whose spout holds tuples back, operators that acknowledge early, flows that split, and hot keys."""

from typing import Any

import pytest
from simulations import STORM, counting, line, sized

from elastream.errors import SettingError
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Fidelity
from elastream.simulator.model import Node, make_model
from elastream.simulator.profile import OperatorTimes, load_profile
from elastream.simulator.simulate import Simulated
from elastream.simulator.state import Limits
from elastream.workload import constant, parse_workload, steps
from elastream_lab.bench.papers.psps_shapes import complex_tweets
from elastream_lab.bench.suites.scenario import Scenario, scenario_from
from elastream_lab.bench.suites.simulator_plant import SimulatorPlant
from elastream_lab.bench.suites.suite import parse_suite
from elastream_lab.bench.suites.suite_model import simulator_of

BOTH = pytest.mark.parametrize("fidelity", [Fidelity, Events])


def in_lanes(run: Simulated, *names: str) -> list[int]:
    columns = [[sample.queued for sample in run.record.series.operators[name]] for name in names]
    return [sum(row) for row in zip(*columns, strict=True)]


@BOTH
def test_a_spout_holds_back_what_would_be_too_many_in_flight(fidelity: Any) -> None:
    # Two operators serve 100 of the 150 tuples that come each second.
    model = line(constant(150, 20.0), length=2, pool=1)
    run = sized(model, "static:replicas=1", STORM, fidelity, limits=Limits(0, False, 0.0, 40), seconds=20.0)
    assert max(in_lanes(run, "op0", "op1")) == 40
    assert max(in_lanes(run, "in")) == pytest.approx(50 * 20 - 40, rel=0.03)
    events = run.events
    assert events.entered == 3000 == events.finished + events.dropped + events.queued
    # Little's law; what waited in the spout does not count.
    assert run.record.latencies.mean_s == pytest.approx(40 / 100, rel=0.05)


@BOTH
def test_a_spout_drops_what_it_cannot_hold_back(fidelity: Any) -> None:
    model = line(constant(150, 20.0), length=1, pool=1)
    limits = Limits(0, False, 0.0, 40, 200)
    run = sized(model, "static:replicas=1", STORM, fidelity, limits=limits, seconds=20.0)
    events = run.events
    assert max(in_lanes(run, "in")) <= 240
    # 50 per second come too many, 240 of them wait in the end.
    assert events.dropped == pytest.approx(50 * 20 - 240, rel=0.03)
    assert events.entered == 3000 == events.finished + events.dropped + events.queued


@BOTH
def test_a_time_out_counts_from_when_the_spout_sent_a_tuple(fidelity: Any) -> None:
    model = line(constant(150, 20.0), length=1, pool=1)
    held = sized(model, "static:replicas=1", STORM, fidelity, limits=Limits(0, False, 1.0, 50), seconds=20.0)
    assert held.events.dropped == 0
    free = sized(model, "static:replicas=1", STORM, fidelity, limits=Limits(0, False, 1.0), seconds=20.0)
    assert free.events.dropped > 500


@BOTH
def test_where_the_first_operator_acknowledges_the_others_are_neither_in_flight_nor_in_the_latency(
    fidelity: Any,
) -> None:
    # The first makes two of one: the second gets 160 tuples per second and serves 100.
    model = line(constant(80, 20.0), length=2, pool=1, shares=(2.0,))
    last, first = (
        sized(model, "static:replicas=1", STORM, fidelity, limits=Limits(0, False, 0.0, 30, 0, acks), seconds=20.0)
        for acks in (False, True)
    )
    assert max(in_lanes(last, "op0", "op1")) <= 31
    assert max(in_lanes(first, "op1")) == pytest.approx(60 * 20, rel=0.03)
    assert max(in_lanes(first, "in")) <= 1
    assert first.record.latencies.mean_s < 0.02 < 0.2 < last.record.latencies.mean_s


def test_psps_stays_small_behind_a_spout_that_hides_what_waits() -> None:
    model = line(steps([50, 700, 700], 60.0), length=2, pool=8)
    hidden, seen = (sized(model, "psps", STORM, limits=Limits(0, False, 0.0, limit), seconds=60.0) for limit in (20, 0))

    def most(run: Simulated) -> int:
        return max(sample.replicas for sample in run.record.series.operators["op0"])

    assert most(seen) == 8
    assert most(hidden) <= 5
    assert hidden.events.finished < 0.7 * seen.events.finished


@BOTH
def test_where_a_flow_splits_every_tuple_goes_one_way(fidelity: Any) -> None:
    arrivals = constant(500, 4.0)
    shares = {
        "parse": {"spam": 1.0},
        "spam": {"user": 0.2, "news": 0.8},
        "news": {"topic": 0.1, "sentiment": 0.9},
    }
    graph = complex_tweets(arrivals, grouping="shuffle", replicas=2).build()
    names = [operator.name for operator in graph.operators]
    times: dict[str, OperatorTimes] = {name: OperatorTimes(0.0005, 1.0, 0.0, shares.get(name, {})) for name in names}
    model = make_model(graph, times, {"tweets": arrivals}, nodes=(Node(16),))
    run = sized(model, "static:replicas=2", STORM, fidelity, seconds=10.0)
    assert (run.events.entered, run.events.finished) == (2000, 2000)
    served = {name: sum(s.processed for s in run.record.series.operators[name]) for name in names[1:]}
    assert served == {
        "parse": 2000,
        "spam": 2000,
        "user": 400,
        "notify": 400,
        "news": 1600,
        "sentiment": 1440,
        "topic": 1600,
        "store": 2000,
    }


@BOTH
def test_hot_keys_fill_the_lane_that_owns_them_while_they_are_hot(fidelity: Any) -> None:
    spike = "at_s=5,duration_s=6,time_to_peak_s=1,hot_keys=1,share=0.8"
    arrivals = parse_workload("constant:per_second=1600,seconds=20", spikes=[spike])
    run = sized(counting(arrivals, pool=4, start=4), "static:replicas=4", STORM, fidelity, seconds=25.0)
    queued = {sample.t_s: sample.queued for sample in run.record.series.operators["count"]}
    assert max(count for t_s, count in queued.items() if t_s < 5.0) < 10
    assert max(queued.values()) == pytest.approx(1151, rel=0.05)
    assert max(count for t_s, count in queued.items() if t_s > 15.0) < 10


def test_what_only_a_simulated_storm_has_is_refused_elsewhere() -> None:
    with pytest.raises(SettingError, match="in_flight must be 1 or more, got 0"):
        Scenario("s", in_flight=0)
    with pytest.raises(SettingError, match="spout_size is how much a spout holds back; set in_flight"):
        Scenario("s", spout_size=10)
    with pytest.raises(SettingError, match="acked: expected last or first, got 'middle'"):
        scenario_from({"name": "s", "acked": "middle"})
    given: list[dict[str, Any]] = [{"in_flight": 10}, {"acked": "first"}]
    for more in given:
        scenario = Scenario("s", workload="constant:per_second=10,seconds=1", **more)
        with pytest.raises(SettingError, match="scenario 's': in_flight and acked are of a simulated Storm"):
            SimulatorPlant(load_profile(None)).seconds(scenario)
        assert SimulatorPlant(load_profile(None), "storm").seconds(scenario) == 1.0


def test_one_scenario_of_a_suite_may_follow_every_tuple_by_itself() -> None:
    text = """
title: Two fidelities
simulated:
  system: storm
  times: {tweets: {tweets: {}, parse: {service_ms: 1}, content: {service_ms: 1}, author: {service_ms: 1}, store: {service_ms: 1}}}
  scenarios: {exact: {fidelity: events}}
defaults: {workload: "constant:per_second=50,seconds=4", policy: "static:replicas=1"}
scenarios: [{name: fast}, {name: exact}]
"""
    suite = parse_suite("two", text, "two.yaml")
    plant = simulator_of(suite, None, None)
    fast, exact = (plant.simulate(scenario) for scenario in suite.scenarios)
    assert fast.events == exact.events
    # Steps of 2 ms, and stretches between two samples.
    assert fast.ticks > 1000 > exact.ticks
