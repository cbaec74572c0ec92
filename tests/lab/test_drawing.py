"""Replicas drawn by how empty their queues are, as PSPS's authors published: of a simulated Storm, and of nothing else."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulations import STORM, TURNS, line, sized

from elastream import Topology, groupings, sources
from elastream.errors import SettingError, TopologyError
from elastream.simulator.drawing import drawn_counts, lane_at, look_at_queues, weigh_by_queue
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Fidelity
from elastream.simulator.model import Model
from elastream.simulator.queue_weighted import QueueWeighted
from elastream.simulator.simulate import Simulated
from elastream.simulator.state import NOW, Limits, Moving
from elastream.testing import LocalEngine
from elastream.workload import constant, steps
from elastream_lab.bench.suites.scenario import Scenario, check_storm_keys

DRAWN = QueueWeighted()


def begun(pool: int, active: int) -> tuple[Model, Moving]:
    """One operator before anything has happened."""
    model = line(constant(100, 10.0), length=1, pool=pool, grouping=DRAWN)
    return model, model.begin({"op0": active})


def of_seed(seed: int, fidelity: Any = Fidelity) -> Simulated:
    model = line(steps([300, 900], 10.0), length=2, pool=4, grouping=DRAWN)
    return sized(model, "psps", STORM, fidelity, seed=seed, seconds=20.0)


def queues(run: Simulated) -> list[int]:
    return [sample.queued for name in run.record.pools for sample in run.record.series.operators[name]]


def test_a_replica_weighs_101_less_the_hundredths_of_its_queue_that_are_full() -> None:
    weights = np.zeros(6)
    weigh_by_queue(weights, np.array([0, 5, 512, 1024, 90_000, 0]), 5)
    # 5 of 1,024 places are 0.49 hundredths; beyond 1,024 nothing is seen; the last is not active.
    assert weights.tolist() == [101, 100, 51, 1, 1, 0]


def test_a_lane_has_the_part_of_its_weight() -> None:
    weights = np.array([101.0, 1.0, 51.0])
    marks = [0.0, 100.9, 101.1, 101.9, 102.1, 152.9]
    assert [lane_at(weights, 3, mark / 153) for mark in marks] == [0, 0, 1, 1, 2, 2]


def test_what_falls_to_a_replica_that_is_not_active_any_more_goes_to_the_first() -> None:
    assert [lane_at(np.array([1.0, 1.0, 1.0]), 2, part) for part in (0.1, 0.5, 0.9)] == [0, 1, 0]


def test_queues_are_looked_at_once_a_second() -> None:
    model, moving = begun(pool=2, active=2)
    look_at_queues(model.fixed, moving, 0)
    moving.queued[:] = [1024, 0]
    moving.clock[NOW] = 0.99
    look_at_queues(model.fixed, moving, 0)
    assert moving.weight.tolist() == [101, 101]
    moving.clock[NOW] = 1.0
    look_at_queues(model.fixed, moving, 0)
    assert moving.weight.tolist() == [1, 101]


def test_a_new_replica_gets_nothing_before_the_next_look() -> None:
    model, moving = begun(pool=3, active=2)
    random = np.random.Generator(np.random.PCG64(1))
    drawn_counts(model.fixed, moving, 0, 1, random)
    moving.active[0], moving.clock[NOW] = 3, 0.5
    first = drawn_counts(model.fixed, moving, 0, 300, random)
    assert (first[2], first.sum()) == (0, 300)
    moving.clock[NOW] = 1.0
    assert drawn_counts(model.fixed, moving, 0, 300, random).min() > 70


def test_draws_are_by_weight_to_within_chance() -> None:
    model, moving = begun(pool=2, active=2)
    moving.queued[:] = [512, 0]
    counts = drawn_counts(model.fixed, moving, 0, 15_200, np.random.Generator(np.random.PCG64(3)))
    # 51 of 152; the standard deviation is 58.
    assert counts[0] == pytest.approx(5_100, abs=180)
    assert counts.sum() == 15_200


@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_the_same_seed_gives_the_same_run_and_another_one_another(fidelity: Any) -> None:
    assert queues(of_seed(7, fidelity)) == queues(of_seed(7, fidelity))
    assert queues(of_seed(7, fidelity)) != queues(of_seed(8, fidelity))


@settings(deadline=None, max_examples=15, derandomize=True)
@given(
    rates=st.lists(st.integers(20, 900), min_size=1, max_size=3),
    pool=st.integers(1, 6),
    limits=st.sampled_from(
        [Limits(0, False, 0.0), Limits(50, True, 0.0), Limits(0, False, 1.5), Limits(0, False, 0.0, 30)]
    ),
    policy=st.sampled_from(["psps", "static:replicas=3", "dabs"]),
    fidelity=st.sampled_from([Fidelity, Events]),
)
def test_every_drawn_tuple_is_somewhere(
    rates: list[int], pool: int, limits: Limits, policy: str, fidelity: Any
) -> None:
    arrivals = steps(rates, 8.0)
    model = line(arrivals, length=2, pool=pool, grouping=DRAWN)
    events = sized(model, policy, STORM, fidelity, limits=limits, seconds=20.0).events
    assert events.entered == events.finished + events.dropped + events.queued
    assert events.entered == arrivals.total


@pytest.mark.parametrize("fidelity", [Fidelity, Events])
def test_with_few_tuples_in_flight_drawn_replicas_are_now_and_then_idle(fidelity: Any) -> None:
    # Four replicas serve 400 tuples/s; twice as many come, and 20 may be in flight.
    def served(grouping: Any) -> float:
        model = line(constant(800, 20.0), length=1, pool=4, grouping=grouping, start=4)
        run = sized(model, "static:replicas=4", STORM, fidelity, limits=Limits(0, False, 0.0, 20), seconds=20.0)
        return run.events.finished / (400 * 20.0)

    assert served(groupings.least_loaded) == pytest.approx(1.0, abs=0.01)
    # Of N tuples in r queues with exponential services N / (N + r - 1) are served, 0.87; with even ones more.
    assert 0.87 < served(DRAWN) < 0.97


def test_a_simulated_engine_refuses_it() -> None:
    with pytest.raises(TopologyError, match="'in' -> 'op0': grouping queue_weighted is of a simulated Storm only"):
        sized(line(constant(10, 1.0), length=1, grouping=DRAWN), "psps", TURNS)


def test_the_engine_refuses_it(tmp_path: Path) -> None:
    flow = Topology("drawn")
    flow.source("in", sources.replay(constant(10, 1.0)))
    flow.batch("op", lambda batch: batch, after="in", grouping=DRAWN).output("out")
    with pytest.raises(TopologyError, match="use least_loaded, or simulate with --system storm"):
        LocalEngine().start(flow, str(tmp_path))


def test_a_scenario_for_spark_refuses_it_before_anything_starts() -> None:
    with pytest.raises(SettingError, match="scenario 'x': grouping queue_weighted is of a simulated Storm only"):
        check_storm_keys(Scenario("x", grouping="queue_weighted"))
