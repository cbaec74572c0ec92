"""Services that get slower with replicas, or ask a service with a limit: throughput is not linear in replicas."""

import pytest
from simulations import TURNS

from elastream import Topology, sources
from elastream.policies import make_policy
from elastream.simulator.events import Events
from elastream.simulator.fidelity import Fidelity, System
from elastream.simulator.model import Node, make_model
from elastream.simulator.profile import OperatorTimes
from elastream.simulator.simulate import simulate
from elastream.simulator.storm_steps import StormSteps
from elastream.workload import constant

SYSTEMS: dict[str, tuple[System, type[Fidelity]]] = {
    "engine": (TURNS._replace(cores=16), Fidelity),
    "engine, every tuple": (TURNS._replace(cores=16), Events),
    "storm": (StormSteps(0.002, 0.0), Fidelity),
    "storm, every tuple": (StormSteps(0.002, 0.0), Events),
}


def served_per_s(system: str, times: OperatorTimes, replicas: int) -> float:
    """Of an operator that is offered more than it can serve."""
    arrivals = constant(600, 20.0)
    flow = Topology("bent")
    flow.source("in", sources.replay(arrivals))
    flow.batch("work", lambda batch: batch, after="in", replicas=(1, 8), start=replicas, waits=True)
    model = make_model(
        flow.output("out", after="work").topology.build(),
        {"in": OperatorTimes(1e-6, 1.0, 0.0), "work": times},
        {"in": arrivals},
        nodes=(Node(16),),
    )
    turns, fidelity = SYSTEMS[system]
    static = make_policy(f"static:replicas={replicas}")
    done = simulate(model, turns, static, td_s=5.0, seed=1, seconds=20.0, fidelity=fidelity)
    return done.events.finished / 20.0


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_bent_service_takes_longer_with_every_replica(system: str) -> None:
    times = OperatorTimes(0.01, cpu=0.1, spread=0.0, shares={"out": 1.0}, bend=0.25)
    assert served_per_s(system, times, 1) == pytest.approx(100, rel=0.06)
    # Four serve 100/s each by 1.75 as long.
    assert served_per_s(system, times, 4) == pytest.approx(4 * 100 / 1.75, rel=0.06)


@pytest.mark.parametrize("system", SYSTEMS)
def test_behind_a_service_with_a_limit_more_replicas_serve_no_more(system: str) -> None:
    times = OperatorTimes(0.01, cpu=0.1, spread=0.0, shares={"out": 1.0}, most_per_s=150.0)
    assert served_per_s(system, times, 1) == pytest.approx(100, rel=0.06)
    assert served_per_s(system, times, 4) == pytest.approx(150, rel=0.1)
    assert served_per_s(system, times, 8) == pytest.approx(150, rel=0.1)
