"""Compile the simulator ahead of its first use: `make compiled`.

The first simulation after a change of the sources takes a minute in which everything is compiled, and processes that start at the
same time all do it. What is compiled here, by simulating a second of each system, is kept for them.
"""

from elastream import Topology, sources
from elastream.policies import make_policy
from elastream.simulator.engine_works import EngineTurns
from elastream.simulator.fidelity import System
from elastream.simulator.model import Model, Node, make_model
from elastream.simulator.profile import OperatorTimes
from elastream.simulator.simulate import simulate
from elastream.simulator.storm_steps import StormSteps
from elastream.workload import constant

SECONDS = 1.0
SYSTEMS: tuple[System, ...] = (
    EngineTurns(
        turn_s=0.001,
        receipt_s=0.0,
        work_s=0.001,
        tuple_s=0.0,
        hop_s=0.0,
        cores=2,
        slots=8,
        budget_s=0.05,
        max_budget_s=1.0,
    ),
    StormSteps(step_s=0.01, crowding=0.0),
)


def compile_ahead() -> None:
    """A table with one row is an array of another layout than one with several, and compiled by itself: so both are simulated."""
    for system in SYSTEMS:
        for operators, pool in ((1, 1), (1, 2), (2, 2)):
            simulate(_line(operators, pool), system, make_policy("static"), td_s=0.5, seed=1, seconds=SECONDS)


def _line(operators: int, pool: int) -> Model:
    arrivals = constant(100, SECONDS)
    flow = Topology("line")
    flow.source("in", sources.replay(arrivals))
    times, before = {"in": OperatorTimes(1e-6, cpu=1.0, spread=0.0)}, "in"
    for number in range(operators):
        name = f"op{number}"
        flow.batch(name, lambda batch: batch, after=before, replicas=(1, pool))
        times[name], before = OperatorTimes(0.001, cpu=1.0, spread=0.0), name
    return make_model(flow.output("out", after=before).topology.build(), times, {"in": arrivals}, nodes=(Node(2),))


if __name__ == "__main__":
    compile_ahead()
