"""How fast the simulator is: lane-ticks a second, a day of tweets, a day of a thousand operators."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from elastream.bench.scenario import Scenario
from elastream.bench.simulator_plant import SimulatorPlant
from elastream.bench.tables import number, table
from elastream.engine import sources
from elastream.policies import make_policy
from elastream.simulator.model import Model, Node, make_model
from elastream.simulator.profile import OperatorTimes, load_profile
from elastream.simulator.simulate import Simulated, simulate
from elastream.simulator.spark_ticks import SparkTicks
from elastream.topology import Topology
from elastream.workload import daily

DAY_S = 86_400.0


@dataclass(frozen=True)
class Speed:
    """One simulation."""

    name: str
    seconds: float
    """Of the clock on the wall."""
    lane_ticks: float
    limit: str
    met: bool

    @property
    def per_second(self) -> float:
        return self.lane_ticks / self.seconds

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "lane_ticks_per_s": self.per_second}


def bench_simulator(say: Callable[[str], None]) -> list[Speed]:
    _many(10, 10, 60.0)  # compiles what is not compiled yet
    found = []
    say("a day of tweets")
    plant = SimulatorPlant(load_profile(None))
    day = Scenario("day", workload="daily:per_second=200", td_s=30.0, service_ms=5.0, pool=8)
    began = time.perf_counter()
    run = plant.simulate(day)
    seconds = time.perf_counter() - began
    found.append(
        Speed(
            "tweets, a day, the engine's ticks",
            seconds,
            len(run.record.pools) * 8 * run.ticks,
            "<= 2 s",
            seconds <= 2,
        )
    )
    say("a thousand operators with ten replicas each, an hour in ticks of a second")
    began = time.perf_counter()
    run = _many(1000, 10, 3600.0)
    seconds = time.perf_counter() - began
    speed = 10_000 * run.ticks / seconds
    found.append(Speed("1,000 x 10, an hour, PSPS", seconds, 10_000 * run.ticks, ">= 2 million/s", speed >= 2e6))
    say("the same, a day")
    began = time.perf_counter()
    run = _many(1000, 10, DAY_S)
    seconds = time.perf_counter() - began
    found.append(Speed("1,000 x 10, a day, PSPS", seconds, 10_000 * run.ticks, "<= 600 s", seconds <= 600))
    return found


def _many(operators: int, pool: int, seconds: float) -> Simulated:
    model = many_operators(operators, pool, seconds)
    ticks = SparkTicks(0.8, 0.0, 0.0, 0.0, 0.6, pool * operators, 4 * operators, 8, 0.2, 0.2, 1.0, True)
    return simulate(model, ticks, make_policy("psps"), td_s=30.0, seed=1, seconds=seconds)


def many_operators(operators: int, pool: int, seconds: float) -> Model:
    """Lines of five behind one source, each with its part of the input."""
    arrivals = daily(operators * 8.0, seconds)
    flow = Topology("many").source("in", sources.replay(arrivals))
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
        [
            its.name,
            f"{its.seconds:.2f}",
            number(its.lane_ticks),
            number(its.per_second),
            its.limit,
            "yes" if its.met else "no",
        ]
        for its in found
    ]
    return table(["", "s", "lane-ticks", "lane-ticks/s", "goal", "met"], rows)
