"""Measures, with Spark on this machine, what the simulator needs to know: what a tick costs, and how long tuples take."""

import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from elastream.apps import BUILT_IN
from elastream.apps.load import load_app
from elastream.bench.work import doze, sink_nothing
from elastream.engine import Settings, run, sources, tick_session
from elastream.engine.executors import capacity_of
from elastream.engine.measure import Tick
from elastream.engine.planner import SHARED_TASK_S, WAITING_TASKS
from elastream.errors import SettingError
from elastream.simulator.profile import Machine, OperatorTimes, Profile
from elastream.topology import Graph, Kind, Topology
from elastream.workload import constant

Floats = npt.NDArray[np.float64]

RATE = 250.0
"""Tuples a second while an application is timed."""
TIMED_APP, TIMED_TICKS = "tweets", 80
"""By which a machine is known."""
MANY_TASKS, TASKS_RATE = (4, 12, 24), 1200.0
"""Sizes at which what a task costs is found, and tuples a second, the same for all of them."""
PATIENCE_S = 90.0
POOL = 8
SERVICE_MS = 5.0
READS_AT = 0.6
WARM_TICKS = 12
"""The first ticks of a run are slower, and say nothing."""


@dataclass(frozen=True)
class TickCost:
    """One tick: what it cost besides serving, and what there was in it."""

    overhead_s: float
    tasks: int
    tuples: int


@dataclass(frozen=True)
class Wait:
    """How much longer than asked for a tuple's wait took, in one run, and how many lanes were served for each tuple."""

    excess_s: float
    lanes: float


def calibrate(apps: Sequence[str], say: Callable[[str], None]) -> Profile:
    """Every application for a while without waits, then one with waits and few replicas or many, then few tasks or many."""
    lanes = POOL * 8 + 2
    spark = tick_session(None, lanes)
    times: dict[str, dict[str, OperatorTimes]] = {}
    for app in dict.fromkeys((*apps, TIMED_APP)):
        say(f"timing the operators of {app}")
        with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
            graph = _graph(app, folder, 0.0, RATE)
            times[app] = operator_times(graph, _watch(spark, graph, folder, Settings()))
    quick, cores = times[TIMED_APP], capacity_of(spark)().cores
    runs: list[list[TickCost]] = []
    many: list[list[TickCost]] = []
    waits: list[Wait] = []
    for size, rate in ((1, RATE / 2), (2, RATE), (4, RATE), (POOL, RATE), (POOL, 1.6 * RATE)):
        say(f"timing ticks of {size} replicas of each operator at {rate:.0f} tuples a second")
        with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
            graph = _graph(TIMED_APP, folder, SERVICE_MS, rate)
            ticks = _watch(spark, graph, folder, Settings(max_budget_s=0.2), size)
            runs.append([tick_cost(graph, tick, cores) for tick in ticks])
            waits.append(wait_of(graph, ticks, quick))
    for size in MANY_TASKS:
        say(f"timing ticks of {size} tasks")
        with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
            graph = _many_tasks()
            ticks = _watch(spark, graph, folder, Settings(max_budget_s=0.2), size)
            many.append([tick_cost(graph, tick, cores) for tick in ticks])
    say("timing a restart")
    with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
        restart_s = _restart(spark, folder)
    machine = fit_machine(runs, many, cores, restart_s)
    late_s, lane_s = fit_waits(waits)
    return Profile(replace(machine, late_s=late_s, lane_s=lane_s), times)


def wait_of(graph: Graph, ticks: Sequence[Tick], quick: dict[str, OperatorTimes]) -> Wait:
    """From the operators' times with waits and without: of the operator in the middle."""
    waiting = operator_times(graph, ticks)
    tuples, lanes = Counter[str](), Counter[str]()
    for tick in ticks:
        for receipt in tick.settled.receipts:
            if receipt.processed:
                tuples[receipt.operator] += receipt.processed
                lanes[receipt.operator] += 1
    served = [operator.name for operator in graph.served if tuples[operator.name] and operator.name in quick]
    excess = [waiting[name].service_s - quick[name].service_s - SERVICE_MS / 1e3 for name in served]
    return Wait(float(np.median(excess)), float(np.median([lanes[name] / tuples[name] for name in served])))


def fit_waits(waits: Sequence[Wait]) -> tuple[float, float]:
    """(what a tuple's wait is late, what a lane costs besides its tuples), as a line; nothing costs less than nothing."""
    late_s, lane_s = _line(np.array([wait.lanes for wait in waits]), np.array([wait.excess_s for wait in waits]))
    return round(late_s, 7), round(lane_s, 7)


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    """Where the line through these points begins, and how it rises; neither below 0. One point that is far off hardly counts."""
    from scipy.optimize import least_squares

    size, reach = float(np.median(np.abs(y))) or 1.0, float(x.max())

    def apart(line: Floats) -> Floats:
        return np.asarray(line[0] + line[1] * x / reach - y / size)

    found = least_squares(apart, [1.0, 0.5], bounds=(0.0, np.inf), loss="soft_l1", f_scale=0.05)
    return float(found.x[0] * size), float(found.x[1] * size / reach)


def operator_times(graph: Graph, ticks: Sequence[Tick]) -> dict[str, OperatorTimes]:
    """Means over all ticks; the spread is that of the services of a tuple, from how much the means of ticks differ."""
    processed: Counter[str] = Counter()
    busy_s: defaultdict[str, float] = defaultdict(float)
    cpu_s: defaultdict[str, float] = defaultdict(float)
    sent: Counter[tuple[str, str]] = Counter()
    each: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for tick in ticks:
        for receipt in tick.settled.receipts:
            if receipt.processed:
                processed[receipt.operator] += receipt.processed
                busy_s[receipt.operator] += receipt.busy_s
                cpu_s[receipt.operator] += receipt.cpu_s
                each[receipt.operator].append((receipt.processed, receipt.busy_s / receipt.processed))
            for target, lanes in receipt.delivered.items():
                sent[receipt.operator, target] += sum(lanes.values())
    found = {}
    for head in (*graph.sources, *(o for o in graph.served if o.kind is not Kind.OUTPUT)):
        members = [member.name for member in graph.chain(head.name)]
        count = max(1, processed[head.name])
        total_s = sum(busy_s[name] for name in members)
        mean_s = total_s / count
        found[str(head.name)] = OperatorTimes(
            service_s=float(f"{mean_s:.4g}"),
            cpu=round(min(1.0, sum(cpu_s[name] for name in members) / total_s), 3) if total_s else 1.0,
            spread=_spread(each[head.name]),
            shares={
                str(edge.target): round(sent[members[-1], edge.target] / count, 4)
                for edge in graph.edges_leaving(head.name)
            },
        )
    return found


def _spread(each: list[tuple[int, float]]) -> float:
    """The standard deviation of one service, in parts of the mean: a mean of n varies by a root of n less."""
    if len(each) < 2:
        return 0.0
    counts = np.array([count for count, _ in each], np.float64)
    means = np.array([mean for _, mean in each])
    mean = np.average(means, weights=counts)
    return round(float(np.sqrt(np.mean(counts * (means / mean - 1) ** 2))), 3) if mean else 0.0


def tick_cost(graph: Graph, tick: Tick, cores: int) -> TickCost:
    alone = threads = tuples = 0
    small_s = 0.0
    for receipt in tick.settled.receipts:
        tuples += receipt.processed
        if graph[receipt.operator].kind is Kind.SOURCE:
            continue
        if receipt.busy_s < SHARED_TASK_S:
            small_s += receipt.busy_s
        elif graph[receipt.operator].waits:
            threads += 1
        else:
            alone += 1
    tasks = alone + min(threads, cores * WAITING_TASKS) + max(1, ceil(small_s / SHARED_TASK_S))
    return TickCost(tick.overhead_s, tasks, tuples)


def fit_machine(
    runs: Sequence[Sequence[TickCost]], many: Sequence[Sequence[TickCost]], cores: int, restart_s: float
) -> Machine:
    """What a task costs is found in `many`, runs of a small application at one rate; the rest in `runs`, of a usual one.

    From what the median tick of each run costs. Not from single ticks: in a run a longer tick finds more tuples, so that
    tuples would seem to cost what made it long.
    """
    medians, of_many = (
        np.array([np.median([[cost.overhead_s, cost.tasks, cost.tuples] for cost in its], axis=0) for its in some])
        for some in (runs, many)
    )
    _, task_s = _line(of_many[:, 1], of_many[:, 0])
    base_s, tuple_s = _line(medians[:, 2], medians[:, 0] - task_s * medians[:, 1])
    # How much the ticks of a run differ from its own median; a pause of a garbage collector is no cost of a tick.
    parts = np.concatenate([[cost.overhead_s for cost in its] / m[0] for its, m in zip(runs, medians, strict=True)])
    spread = float(np.std(parts[parts <= 3]))
    return Machine(
        cores,
        round(base_s, 6),
        round(task_s, 6),
        round(tuple_s, 8),
        round(spread, 3),
        READS_AT,
        round(restart_s, 2),
    )


def _graph(app: str, folder: str, service_ms: float, rate: float) -> Graph:
    options: dict[str, object] = {}
    if app in BUILT_IN:
        options = {"database": f"{folder}/results.sqlite", "service_ms": service_ms, "pool": POOL}
    return load_app(app, constant(rate, 3600.0), options)


def _many_tasks() -> Graph:
    """Replicas that wait, but do not say so: each is a task of its own, and none is in another's way."""
    flow = Topology("tasks").source("in", sources.replay(constant(TASKS_RATE, 3600.0)))
    flow.map("work", doze, after="in", replicas=(1, max(MANY_TASKS)))
    return flow.sink("last", sink_nothing, after="work").build()


def _watch(spark: SparkSession, graph: Graph, folder: str, settings: Settings, size: int = 2) -> list[Tick]:
    """Enough ticks of a warm run."""
    ticks: list[Tick] = []
    policy = f"static:replicas={size}"
    with run(graph, f"{folder}/base", spark=spark, policy=policy, settings=settings, benchmark_s=0) as handle:
        handle.subscribe(ticks.append)
        until = time.monotonic() + PATIENCE_S
        while len(ticks) < WARM_TICKS + TIMED_TICKS and time.monotonic() < until and handle.active:
            handle.await_end(0.2)
    if len(ticks) <= WARM_TICKS:
        raise SettingError(f"only {len(ticks)} ticks in {PATIENCE_S:.0f} s: this machine is too busy to be measured")
    return ticks[WARM_TICKS:]


def _restart(spark: SparkSession, folder: str) -> float:
    """How long no tick ended, around one that was asked for."""
    ticks: list[Tick] = []
    graph = _graph(TIMED_APP, folder, 0.0, RATE)
    with run(graph, f"{folder}/base", spark=spark, policy="static:replicas=1", benchmark_s=0) as handle:
        handle.subscribe(ticks.append)
        handle.await_end(5.0)
        before = len(ticks)
        handle._driver.request_restart()
        while len(ticks) < before + 10 and handle.active:
            handle.await_end(0.2)
    ends = [tick.ended_s for tick in ticks]
    usual = float(np.median(np.diff(ends)))
    return max(b - a for a, b in pairwise(ends[before - 1 :])) - usual
