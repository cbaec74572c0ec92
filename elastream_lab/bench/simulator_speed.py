"""How fast the simulator is: a day of tweets, an hour and a day of a thousand operators."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from elastream.connectors import sources
from elastream.policies import make_policy
from elastream.simulator.engine_works import EngineTurns
from elastream.simulator.model import Model, Node, make_model
from elastream.simulator.profile import OperatorTimes, load_profile
from elastream.simulator.simulate import Simulated, simulate
from elastream.topology import Topology
from elastream.workload import daily
from elastream_lab.bench.common.tables import number, table
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.simulator_plant import SimulatorPlant

DAY_S = 86_400.0


@dataclass(frozen=True)
class Speed:
    """One simulation."""

    name: str
    simulated_s: float
    seconds: float
    """Of the clock on the wall."""
    limit_s: float

    @property
    def met(self) -> bool:
        return self.seconds <= self.limit_s

    @property
    def times(self) -> float:
        """How many times faster than the clock."""
        return self.simulated_s / self.seconds

    @property
    def verdicts(self) -> dict[str, Any]:
        return {"times": self.times, "met": self.met}


def bench_simulator(say: Callable[[str], None]) -> list[Speed]:
    """Each once, after one that compiles."""
    _many(10, 10, 60.0)
    plant = SimulatorPlant(load_profile(None))
    day = Scenario("day", workload="daily:per_second=200", td_s=30.0, service_ms=5.0, pool=8)
    return [
        _timed(say, "tweets, a day, PSPS", DAY_S, 2.0, lambda: plant.simulate(day)),
        _timed(say, "1,000 operators x 10, an hour, PSPS", 3600.0, 60.0, lambda: _many(1000, 10, 3600.0)),
        _timed(say, "1,000 operators x 10, a day, PSPS", DAY_S, 600.0, lambda: _many(1000, 10, DAY_S)),
    ]


def _timed(
    say: Callable[[str], None], name: str, simulated_s: float, limit_s: float, simulated: Callable[[], Simulated]
) -> Speed:
    say(name)
    began = time.perf_counter()
    simulated()
    return Speed(name, simulated_s, time.perf_counter() - began, limit_s)


def _many(operators: int, pool: int, seconds: float) -> Simulated:
    model = many_operators(operators, pool, seconds)
    machine = load_profile(None).machine
    turns = EngineTurns(
        machine.turn_s,
        machine.receipt_s,
        machine.work_s,
        machine.tuple_s,
        machine.hop_s,
        cores=4 * operators,
        slots=pool * operators,
        budget_s=0.05,
        max_budget_s=1.0,
    )
    return simulate(model, turns, make_policy("psps"), td_s=30.0, seed=1, seconds=seconds)


def many_operators(operators: int, pool: int, seconds: float) -> Model:
    """Lines of five behind one source, each with its part of the input."""
    arrivals = daily(operators * 8.0, seconds)
    flow = Topology("many")
    flow.source("in", sources.replay(arrivals))
    lines = max(1, operators // 5)
    times = {"in": OperatorTimes(1e-9, 1.0, 0.0, {f"op{line}-0": 1 / lines for line in range(lines)})}
    for line in range(lines):
        before = "in"
        for place in range(min(5, operators)):
            name = f"op{line}-{place}"
            flow.batch(name, lambda batch: batch, after=before, replicas=(1, pool))
            times[name] = OperatorTimes(0.02, 0.1, 0.0)
            before = name
        flow.output(f"out{line}", after=before)
    return make_model(flow.build(), times, {"in": arrivals}, nodes=(Node(4.0 * operators),))


def speed_table(found: list[Speed]) -> str:
    rows = [
        [its.name, f"{its.seconds:.2f}", number(its.times), f"<= {its.limit_s:g} s", "yes" if its.met else "no"]
        for its in found
    ]
    return table(["", "s", "times faster than the clock", "goal", "met"], rows)
