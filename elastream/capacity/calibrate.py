"""Measure, with Spark on this machine, the times that the simulator needs: of operators, of works, and of the driver's turns.

Every application runs once, at three rates. What an operator costs per tuple and per work is told apart by works with few and
with many tuples; what a host and the driver cost besides, by what their processes and threads used.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from elastream.applications.load import find_app, load_app, parameters_of
from elastream.capacity.fit import Costs, fit_late, fit_machine, operator_times, with_more
from elastream.capacity.timed_app import timed_app
from elastream.engine import Handle, RunListener, session, start
from elastream.engine.driver.ports import Tick
from elastream.engine.handle import RunHandle
from elastream.engine.spark.executors import capacity_of
from elastream.errors import SettingError
from elastream.policies import make_policy
from elastream.report.latency import Latencies
from elastream.simulator.application import Application, simulate_application
from elastream.simulator.profile import Machine, OperatorTimes, Profile
from elastream.topology import Graph
from elastream.workload import Arrivals, constant, steps

RATES = (25.0, 200.0, 3000.0)
"""Tuples per second while an application is timed, one after another: works of one tuple and of many."""
SLOW_RATES = (25.0, 60.0, 120.0)
"""The same where every operator waits as well."""
STRETCH_S = 7.0
"""How long each of them lasts."""
WINDOWED_STRETCH_S = 25.0
"""The same for applications whose results come late."""
WARM_S = 2.0
"""The beginning of a stretch says nothing."""
REPLICAS, POOL = 2, 8
WAIT_S = 0.005
SPREAD = "partial_key"
"""A grouping that spreads a key over several replicas."""

MakeGraph = Callable[[str, Arrivals], Graph]
"""A folder for results and what arrives -> the graph to time."""

PATIENCE_S = 90.0

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Stretch:
    """One rate of one run, without its beginning."""

    ticks: list[Tick]
    host_cpu_s: float
    """Processor time of the hosts' processes."""
    turn_s: float
    """Mean processor time of a turn of the driver."""

    @property
    def latency_s(self) -> float:
        together = Latencies()
        for tick in self.ticks:
            together.merge(tick.result.latencies)
        return together.mean_s


def calibrate(apps: Sequence[str], say: Callable[[str], None]) -> Profile:
    """Time the machine with operators of our own, with and without waits; then every application."""
    spark = session()
    cores = capacity_of(spark)().cores
    say("timing this machine")
    own, stretches = _timed(spark, lambda folder, arrivals: timed_app(arrivals, 0.0, POOL))
    say(f"timing operators that wait for {WAIT_S * 1e3:g} ms")
    with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
        graph = timed_app(steps(SLOW_RATES, STRETCH_S * len(SLOW_RATES)), WAIT_S, POOL)
        slow, _ = _watch(spark, graph, folder)
        late_s = fit_late(operator_times(graph, slow[0].ticks), own, WAIT_S)
    costs = [costs_of(stretch) for stretch in (*stretches, *slow)]
    times: dict[str, dict[str, OperatorTimes]] = {}
    for app in apps:
        say(f"timing the operators of {app}")
        times[app], measured = _timed(spark, partial(_graph, app))
        costs += [costs_of(stretch) for stretch in measured]
        if _adds_operators(app):
            say(f"timing {app} with the operator that adds up the counts of several replicas")
            more, _ = _timed(spark, partial(_graph, app, grouping=SPREAD))
            times[app] = with_more(times[app], more)
    machine = replace(fit_machine(costs, cores), late_s=late_s)
    return Profile(replace(machine, hop_s=fit_hop(machine, own, stretches[0].latency_s)), times)


def _timed(spark: SparkSession, make: MakeGraph) -> tuple[dict[str, OperatorTimes], list[Stretch]]:
    """Times of the operators of a graph, and the stretches they were measured in."""
    with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
        late = waits_for_events(make(folder, steps(RATES, 1.0)))
        stretch_s = WINDOWED_STRETCH_S if late else STRETCH_S
        graph = make(folder, steps(RATES, stretch_s * len(RATES)))
        stretches, whole = _watch(spark, graph, folder, stretch_s)
        ticks = [tick for stretch in stretches for tick in stretch.ticks]
        return operator_times(graph, whole if late else ticks), stretches


def costs_of(stretch: Stretch) -> Costs:
    works = tuples = turns = 0
    operators_s = 0.0
    for tick in stretch.ticks:
        turns += 1
        works += sum(receipt.processed > 0 for receipt in tick.result.receipts)
        tuples += sum(receipt.processed for receipt in tick.result.receipts)
        operators_s += sum(receipt.cpu_s for receipt in tick.result.receipts)
    return Costs(works, tuples, max(0.0, stretch.host_cpu_s - operators_s), works / max(1, turns), stretch.turn_s)


def fit_hop(machine: Machine, times: dict[str, OperatorTimes], latency_s: float) -> float:
    """The part of a trickle's latency that the simulator misses, spread over the messages that a tuple takes part in."""
    graph = timed_app(constant(RATES[0], 60.0), 0.0, POOL)
    policy = make_policy(f"static:replicas={REPLICAS}")
    done = simulate_application(Application(graph.name, graph, times), policy, machine, td_s=5.0)
    messages = 2 * len(times) - 1
    return round(max(0.0, (latency_s - done.record.latencies.mean_s) / messages), 7)


def _graph(app: str, folder: str, arrivals: Arrivals, grouping: str | None = None) -> Graph:
    """An application in its shortest form: no added waits, a small pool, results in a file that goes with the folder."""
    parameters = parameters_of(find_app(app))
    wanted = {"database": f"{folder}/results.sqlite", "service_ms": 0.0, "grouping": grouping}
    options: dict[str, object] = {k: v for k, v in wanted.items() if k in parameters and v is not None}
    return load_app(app, arrivals, options | {"pool": POOL})


def _adds_operators(app: str) -> bool:
    """True if an application has operators more where its grouping spreads a key over several replicas."""
    if "grouping" not in parameters_of(find_app(app)):
        return False
    with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
        arrivals = steps(RATES, 1.0)
        try:
            spread = _graph(app, folder, arrivals, SPREAD)
        except SettingError:
            return False
        return len(spread.operators) > len(_graph(app, folder, arrivals).operators)


def waits_for_events(graph: Graph) -> bool:
    """True where tuples leave when a watermark has passed them: only a whole run has as many of them as belong to those that came."""
    return any(o.keyed is not None and o.keyed.event_time is not None for o in graph.operators)


class _Turns(RunListener):
    """All ticks of a run, and what a turn cost at each."""

    def __init__(self) -> None:
        self.ticks: list[Tick] = []
        self.turns: list[tuple[float, float]] = []
        self._cost_s: Callable[[], float] = lambda: 0.0

    def on_start(self, handle: RunHandle) -> None:
        self._cost_s = lambda: handle.status.tick_cpu_s

    def on_tick(self, tick: Tick) -> None:
        self.ticks.append(tick)
        self.turns.append((tick.ended_s, self._cost_s()))


def _watch(
    spark: SparkSession, graph: Graph, folder: str, stretch_s: float = STRETCH_S
) -> tuple[list[Stretch], list[Tick]]:
    """The stretches of a run, and all its ticks."""
    seen, used = _Turns(), list[tuple[float, float]]()
    policy = f"static:replicas={REPLICAS}"
    with start(graph, f"{folder}/base", spark=spark, policy=policy, benchmark_s=0, listeners=[seen]) as handle:
        until = time.monotonic() + PATIENCE_S
        while handle.active and time.monotonic() < until:
            used.append((time.time(), _host_cpu_s(handle)))
            handle.await_end(0.25)
        origin_s = min(float(position["origin_s"]) for position in handle.status.sources.values())
    ticks, turns = seen.ticks, seen.turns
    if not ticks or len(used) < 2:
        raise SettingError(f"no tick in {PATIENCE_S:.0f} s: this machine is too busy to be measured")
    stretches = [
        _stretch(ticks, turns, used, origin_s + n * stretch_s + WARM_S, origin_s + (n + 1) * stretch_s)
        for n in range(len(RATES))
    ]
    return stretches, ticks


def _stretch(
    ticks: list[Tick], turns: list[tuple[float, float]], used: list[tuple[float, float]], began_s: float, ended_s: float
) -> Stretch:
    inside = [tick for tick in ticks if began_s < tick.ended_s <= ended_s]
    at, cpu_s = (np.array(its) for its in zip(*used, strict=True))
    host_cpu_s = float(np.interp(ended_s, at, cpu_s) - np.interp(began_s, at, cpu_s))
    own = [cost for at_s, cost in turns if began_s < at_s <= ended_s]
    if not inside:
        raise SettingError("a stretch without a tick: this machine is too busy to be measured")
    return Stretch(inside, host_cpu_s, float(np.median(own)))


def _host_cpu_s(handle: Handle) -> float:
    """Processor time that all hosts have used so far."""
    total = 0.0
    for host in handle.status.hosts:
        try:
            fields = Path(f"/proc/{host.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:13])) * _TICK_S
    return total
