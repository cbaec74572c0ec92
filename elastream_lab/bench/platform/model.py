"""The platform benchmark on the simulator: configurations of containers enter, tuples per second leave."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from elastream.policies import make_policy
from elastream.settings import Settings
from elastream.simulator.application import engine_system
from elastream.simulator.cluster import Cluster
from elastream.simulator.containers import Startup
from elastream.simulator.model import Node, make_model
from elastream.simulator.profile import Machine, OperatorTimes
from elastream.simulator.simulate import simulate
from elastream.simulator.state import Limits
from elastream.workload import constant
from elastream_lab.bench.platform.filter import filter_flow
from elastream_lab.bench.platform.runs import OFFERED_PER_S, Q_SIZE, Borne, Containers

SECONDS = 6.0
WARM_S = 2.0
SOURCE = OperatorTimes(service_s=1e-6, cpu=1.0, spread=0.0, shares={"filter": 1.0}, call_s=5e-4)
"""As the sources of the built-in applications."""
MOST_OF_THREADS, MOST_OF_PROCESSES = 0.05, 1.0
"""No more crowding than this is looked for."""
FOUND = OperatorTimes(service_s=1e-6, cpu=1.0, spread=0.0, call_s=2e-4)


def filter_times(rows: Sequence[Borne], cores: int) -> dict[str, OperatorTimes]:
    """Per filter: what a tuple takes where nothing is in its way, and the share of that which is computing."""
    found = {}
    for kind in dict.fromkeys(row.kind for row in rows):
        roomy = [row for row in rows if row.kind == kind and row.hosts <= row.machines * cores]
        if kind == "waits":
            # Threads of one process are in one another's way.
            fewest = min(row.threads / row.hosts for row in roomy)
            service_s = median(row.service_s for row in roomy if row.threads / row.hosts == fewest)
            # A thread that wakes up rarely finds its caches cold: that is a cost of idle cores.
            cpu = min(1.0, min(row.cpu_s for row in roomy) / service_s)
        else:
            # Other processes of the machine do not count.
            service_s, cpu = median(row.cpu_s for row in roomy), 1.0
        found[kind] = OperatorTimes(float(f"{service_s:.4g}"), round(cpu, 4), 0.0, {"found": 0.01})
    return found


def simulate_rows(machine: Machine, rows: Sequence[Borne]) -> list[float]:
    """Tuples per second of the configurations that were measured. `machine.cores` are those of one machine."""
    times = filter_times(rows, machine.cores)
    return [simulated_per_s(machine, times[row.kind], row.kind, row.containers) for row in rows]


def fit_crowding(machine: Machine, rows: Sequence[Borne]) -> tuple[float, float]:
    """Of threads and of processes: with which the simulator comes nearest to what was measured.

    Where no row can tell, as `machine` has it: threads need more than one in a process, processes more than there are cores.
    """
    in_one = [row for row in rows if row.kind == "waits" and row.machines == 1]
    beyond = [row for row in rows if row.kind == "computes" and row.hosts > row.machines * machine.cores]
    times = filter_times(rows, machine.cores)
    threads, processes = machine.thread_crowding, machine.process_crowding
    if any(row.threads > row.hosts for row in in_one):
        threads = _nearest(lambda value: replace(machine, thread_crowding=value), in_one, times, MOST_OF_THREADS)
    if beyond:
        processes = _nearest(lambda value: replace(machine, process_crowding=value), beyond, times, MOST_OF_PROCESSES)
    return threads, processes


def _nearest(
    made: Callable[[float], Machine], rows: Sequence[Borne], times: Mapping[str, OperatorTimes], most: float
) -> float:
    from scipy.optimize import minimize_scalar

    def apart(value: float) -> float:
        rates = [simulated_per_s(made(value), times[row.kind], row.kind, row.containers) for row in rows]
        return sum(math.log(rate / row.per_second) ** 2 for rate, row in zip(rates, rows, strict=True))

    found = minimize_scalar(apart, bounds=(0.0, most), method="bounded", options={"xatol": most / 200})
    # The search never tries the ends.
    return round(float(found.x), 5) if apart(float(found.x)) < apart(0.0) else 0.0


def simulated_per_s(machine: Machine, times: OperatorTimes, kind: str, containers: Containers) -> float:
    """What the filter serves per second, as `measure_platform` counts it."""
    arrivals = constant(OFFERED_PER_S, SECONDS)
    graph = filter_flow(kind, containers.threads, arrivals)
    model = make_model(
        graph,
        {"strings": SOURCE, "filter": times, "found": FOUND},
        {"strings": arrivals},
        nodes=[Node(machine.cores)] * containers.machines,
    )
    cluster = Cluster(nodes=model.nodes, startup=Startup(processes=containers.hosts // containers.machines))
    turns = engine_system(machine, model, Settings(), cluster)
    done = simulate(
        model,
        turns,
        make_policy(f"static:replicas={containers.threads}"),
        td_s=1.0,
        seed=0,
        seconds=SECONDS,
        limits=Limits(Q_SIZE, False, 0.0),
        cluster=cluster,
    )
    samples = [sample for sample in done.record.series.operators["filter"] if sample.t_s > WARM_S]
    return sum(sample.processed for sample in samples) / sum(sample.seconds for sample in samples)
