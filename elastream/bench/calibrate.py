"""Measure, with Spark on this machine, the times that the simulator needs: of operators, of works, and of the driver's turns.

Every application runs once, at three rates. What an operator costs per tuple and per work is told apart by works with few and
with many tuples; what a host and the driver cost besides, by what their processes and threads used.
"""

import os
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyspark.sql import SparkSession

from elastream.apps import BUILT_IN, COUNTING, WINDOWED
from elastream.apps.load import load_app
from elastream.engine import Handle, run, session
from elastream.engine.spark.executors import capacity_of
from elastream.engine.tick.ports import Tick
from elastream.errors import SettingError
from elastream.scoring.latency import Latencies
from elastream.simulator.profile import Machine, OperatorTimes, Profile
from elastream.topology import Graph, Kind
from elastream.workload import Arrivals, steps

Floats = npt.NDArray[np.float64]

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
TIMED_APP = "tweets"
"""By which a machine is known."""
REPLICAS, POOL = 2, 8
SERVICE_MS = 5.0
LEAST_S = 1e-6
"""No tuple takes less."""
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


@dataclass(frozen=True)
class Costs:
    """Works, tuples and turns of a stretch, and the processor time that they took."""

    works: int
    tuples: int
    around_s: float
    """Processor time of hosts that no operator used."""
    receipts: float
    """Per turn."""
    turn_s: float


def calibrate(apps: Sequence[str], say: Callable[[str], None]) -> Profile:
    """Every application without waits, one of them with waits, and a restart."""
    spark = session()
    cores = capacity_of(spark)().cores
    times: dict[str, dict[str, OperatorTimes]] = {}
    stretches: dict[str, list[Stretch]] = {}
    for app in dict.fromkeys((*apps, TIMED_APP)):
        say(f"timing the operators of {app}")
        with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
            stretch_s = WINDOWED_STRETCH_S if app in WINDOWED else STRETCH_S
            graph = _graph(app, folder, 0.0, steps(RATES, stretch_s * len(RATES)))
            stretches[app], whole = _watch(spark, graph, folder, stretch_s)
            ticks = [tick for its in stretches[app] for tick in its.ticks]
            times[app] = operator_times(graph, whole if waits_for_events(graph) else ticks)
        if app in COUNTING:
            say(f"timing {app} with the operator that adds up what several replicas counted")
            with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
                graph = _graph(app, folder, 0.0, steps(RATES, STRETCH_S * len(RATES)), grouping="partial_key")
                ticks = [tick for its in _watch(spark, graph, folder)[0] for tick in its.ticks]
                times[app] = with_more(times[app], operator_times(graph, ticks))
    say(f"timing operators that wait for {SERVICE_MS:g} ms")
    with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
        graph = _graph(TIMED_APP, folder, SERVICE_MS, steps(SLOW_RATES, STRETCH_S * len(SLOW_RATES)))
        slow, _ = _watch(spark, graph, folder)
        late_s = fit_late(operator_times(graph, slow[0].ticks), times[TIMED_APP], SERVICE_MS / 1e3)
    say("timing a restart")
    with tempfile.TemporaryDirectory(prefix="elastream-calibrate-") as folder:
        restart_s = _restart(spark, folder)
    costs = [costs_of(its) for app in stretches.values() for its in app] + [costs_of(its) for its in slow]
    machine = replace(fit_machine(costs, cores), restart_s=round(restart_s, 2), late_s=late_s)
    hop_s = fit_hop(machine, times[TIMED_APP], stretches[TIMED_APP][0].latency_s)
    return Profile(replace(machine, hop_s=hop_s), times)


def operator_times(graph: Graph, ticks: Sequence[Tick]) -> dict[str, OperatorTimes]:
    """From the receipts of works: what one tuple takes, and what one work takes besides."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    busy_s: defaultdict[str, list[float]] = defaultdict(list)
    cpu_s: defaultdict[str, float] = defaultdict(float)
    sent: Counter[tuple[str, str]] = Counter()
    head_of: dict[str, str] = {
        m.name: head.name for head in (*graph.sources, *graph.served) for m in graph.chain(head.name)
    }
    for tick in ticks:
        together: dict[tuple[str, int], list[float]] = {}
        for receipt in tick.result.receipts:
            head = head_of[receipt.operator]
            # What is chained to an operator comes right behind it, on the same lane.
            found = together.setdefault((head, receipt.lane), [0, 0.0])
            found[0] += receipt.processed if receipt.operator == head else 0
            found[1] += receipt.busy_s
            cpu_s[head] += receipt.cpu_s
        for (head, _), (processed, seconds) in together.items():
            if processed:
                rows[head].append(int(processed))
                busy_s[head].append(seconds)
        for lane, senders in tick.result.sent.items():
            for sender, count in senders.items():
                sent[sender, lane.operator] += count
    found_times = {}
    for operator in (*graph.sources, *(o for o in graph.served if o.kind is not Kind.OUTPUT)):
        name: str = operator.name
        taken, took_s = np.array(rows[name], np.float64), np.array(busy_s[name])
        call_s, service_s = fit_line(taken, took_s)
        count, total_s = max(1.0, taken.sum()), float(took_s.sum())
        found_times[str(name)] = OperatorTimes(
            service_s=float(f"{max(service_s, LEAST_S):.4g}"),
            cpu=round(min(1.0, cpu_s[name] / total_s), 3) if total_s else 1.0,
            spread=_spread(taken, took_s, call_s, service_s),
            shares={
                str(edge.target): round(sent[name, edge.target] / count, 4)
                for edge in graph.edges_leaving(operator.name)
            },
            call_s=float(f"{call_s:.4g}"),
        )
    return found_times


def fit_line(x: Floats, y: Floats) -> tuple[float, float]:
    """Where the line through these points begins, and how it rises; neither below 0. A point that is far off hardly counts.

    Points with the same x count together, by their median: a pause of the machine is no cost of a work.
    """
    from scipy.optimize import least_squares

    if not len(x):
        return 0.0, 0.0
    places = np.unique(x)
    middles = np.array([np.median(y[x == place]) for place in places])
    weights = np.sqrt(np.array([np.sum(x == place) for place in places]))
    if len(places) == 1:
        return 0.0, float(middles[0] / places[0]) if places[0] else 0.0
    size, reach = float(np.median(np.abs(middles))) or 1.0, float(places.max())

    def apart(line: Floats) -> Floats:
        return np.asarray(weights * (line[0] + line[1] * places / reach - middles / size))

    found = least_squares(apart, [0.5, 1.0], bounds=(0.0, np.inf), loss="soft_l1", f_scale=0.1)
    return float(found.x[0] * size), float(found.x[1] * size / reach)


def _spread(taken: Floats, took_s: Floats, call_s: float, service_s: float) -> float:
    """The standard deviation of a work of one tuple, in parts of its mean: one of n tuples varies by a root of n less."""
    if len(taken) < 2 or not call_s + service_s:
        return 0.0
    off = took_s / (call_s + service_s * taken) - 1
    # A pause of the machine is no cost of a work.
    kept = off <= np.quantile(off, 0.98)
    return round(float(np.sqrt(np.mean(taken[kept] * off[kept] ** 2))), 3)


def fit_late(slow: dict[str, OperatorTimes], quick: dict[str, OperatorTimes], wait_s: float) -> float:
    """How much longer than asked for a wait takes: of the operator in the middle. No machine wakes a thread too early."""
    found = [
        (slow[name].service_s + slow[name].call_s) - (quick[name].service_s + quick[name].call_s) - wait_s
        for name in slow
        if slow[name].service_s >= wait_s / 2
    ]
    return round(max(0.0, float(np.median(found))), 7) if found else 0.0


def costs_of(stretch: Stretch) -> Costs:
    works = tuples = turns = 0
    operators_s = 0.0
    for tick in stretch.ticks:
        turns += 1
        works += sum(receipt.processed > 0 for receipt in tick.result.receipts)
        tuples += sum(receipt.processed for receipt in tick.result.receipts)
        operators_s += sum(receipt.cpu_s for receipt in tick.result.receipts)
    return Costs(works, tuples, max(0.0, stretch.host_cpu_s - operators_s), works / max(1, turns), stretch.turn_s)


def fit_machine(costs: Sequence[Costs], cores: int) -> Machine:
    """Costs of a work and a tuple in a host, and of a turn and a receipt in the driver."""
    from scipy.optimize import nnls

    of = np.array([[its.works, its.tuples] for its in costs], np.float64)
    around_s = np.array([its.around_s for its in costs])
    # Each stretch counts alike, however much was done in it.
    scale = np.maximum(around_s, 1e-9)
    work_s, tuple_s = nnls(of / scale[:, None], around_s / scale)[0]
    turn_s, receipt_s = nnls(np.array([[1.0, its.receipts] for its in costs]), np.array([its.turn_s for its in costs]))[
        0
    ]
    return Machine(
        cores=cores,
        turn_s=round(float(turn_s), 7),
        receipt_s=round(float(receipt_s), 7),
        work_s=round(float(work_s), 7),
        tuple_s=round(float(tuple_s), 9),
        hop_s=0.0,
        restart_s=0.0,
    )


def fit_hop(machine: Machine, times: dict[str, OperatorTimes], latency_s: float) -> float:
    """The part of a trickle's latency that the simulator misses, spread over the messages that a tuple takes part in."""
    from elastream.bench.scenario import Scenario
    from elastream.bench.simulator_plant import SimulatorPlant

    plant = SimulatorPlant(Profile(machine, {TIMED_APP: times}))
    trickle = Scenario(
        "trickle",
        app=TIMED_APP,
        workload=f"constant:per_second={RATES[0]:g},seconds=60",
        policy=f"static:replicas={REPLICAS}",
        pool=POOL,
        service_ms=0.0,
    )
    simulated_s = plant.simulate(trickle).record.latencies.mean_s
    messages = 2 * len(times) - 1
    return round(max(0.0, (latency_s - simulated_s) / messages), 7)


def with_more(known: dict[str, OperatorTimes], more: dict[str, OperatorTimes]) -> dict[str, OperatorTimes]:
    """The times of `known`, with the operators that only `more` has, and the shares of what goes to them."""
    both = {name: replace(its, shares={**more[name].shares, **its.shares}) for name, its in known.items()}
    return {**both, **{name: its for name, its in more.items() if name not in known}}


def _graph(app: str, folder: str, service_ms: float, arrivals: Arrivals, **more: object) -> Graph:
    options: dict[str, object] = {}
    if app in BUILT_IN:
        options = {"database": f"{folder}/results.sqlite", "service_ms": service_ms, "pool": POOL, **more}
    return load_app(app, arrivals, options)


def waits_for_events(graph: Graph) -> bool:
    """True where tuples leave when a watermark has passed them: only a whole run has as many of them as belong to those that came."""
    return any(o.keyed is not None and o.keyed.event_time is not None for o in graph.operators)


def _watch(
    spark: SparkSession, graph: Graph, folder: str, stretch_s: float = STRETCH_S
) -> tuple[list[Stretch], list[Tick]]:
    """The stretches of a run, and all its ticks."""
    ticks: list[Tick] = []
    turns: list[tuple[float, float]] = []
    used: list[tuple[float, float]] = []
    with run(graph, f"{folder}/base", spark=spark, policy=f"static:replicas={REPLICAS}", benchmark_s=0) as handle:

        def listen(tick: Tick) -> None:
            ticks.append(tick)
            turns.append((tick.ended_s, handle.turn_cpu_s))

        handle.subscribe(listen)
        until = time.monotonic() + PATIENCE_S
        while handle.active and time.monotonic() < until:
            used.append((time.time(), _host_cpu_s(handle)))
            handle.await_end(0.25)
        origin_s = min(float(its["origin_s"]) for its in handle.ledger.sources.values())
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
    for seats in list(handle._run.planner.roster.hosts.values()):
        try:
            fields = Path(f"/proc/{seats.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:13])) * _TICK_S
    return total


def _restart(spark: SparkSession, folder: str) -> float:
    """From the stop of a run to the first tick of the next one on the same base."""
    graph = _graph(TIMED_APP, folder, 0.0, steps((RATES[0],), 600.0))
    policy = f"static:replicas={REPLICAS}"
    with run(graph, f"{folder}/base", spark=spark, policy=policy, benchmark_s=0) as handle:
        handle.await_end(2.0)
        began = time.monotonic()
    with run(graph, f"{folder}/base", spark=spark, policy=policy, benchmark_s=0) as handle:
        ticks: list[Tick] = []
        handle.subscribe(ticks.append)
        while not any(tick.result.receipts for tick in ticks) and handle.active:
            handle.await_end(0.02)
            if time.monotonic() - began > PATIENCE_S:
                raise SettingError(f"no tick in {PATIENCE_S:.0f} s after a restart")
        return time.monotonic() - began
