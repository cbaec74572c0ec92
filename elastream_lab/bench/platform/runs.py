"""One configuration of containers measured: the filter has more to do than it can, and what it does is counted."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import SparkSession

from elastream.connectors.query.spark_handle import Handle
from elastream.engine.assemble import Plan, assemble
from elastream.engine.driver.ports import Tick
from elastream.engine.hosts.spark_hosts import SparkHosts
from elastream.engine.measure.usage import tree_usage
from elastream.engine.spark.executors import await_executor, capacity_of, check_executors
from elastream.engine.spark.masters import is_local
from elastream.engine.spark.session import session
from elastream.engine.worker.program import Program
from elastream.errors import RunFailed
from elastream.fleet.machines import FixedMachines
from elastream.lanes import Store
from elastream.settings import QueueSettings, Settings
from elastream.topology import Graph
from elastream.workload import constant
from elastream_lab.bench.platform.filter import filter_flow

OFFERED_PER_S = 200_000.0
"""More than any of the configurations can serve; full queues hold the source up."""
Q_SIZE = 1000
"""Tuples in front of a replica: some tenths of a second of work."""
PATIENCE_S = 60.0


class Containers(NamedTuple):
    """So many machines, processes on all of them together, and threads in all of these, which are the filter's replicas."""

    machines: int
    hosts: int
    threads: int


@dataclass(frozen=True)
class Borne:
    """What a filter bore in a configuration of containers."""

    kind: str
    """`computes` or `waits`."""
    machines: int
    hosts: int
    threads: int
    per_second: float
    service_s: float
    """Seconds of a replica per tuple."""
    cpu_s: float
    """Seconds of a core per tuple, in the filter itself."""
    cores: float | None
    """Cores that all processes used; None on a cluster, where this machine does not see them."""
    memory_mb: float | None
    """Memory that they held, the same."""
    seconds: float

    @property
    def containers(self) -> Containers:
        return Containers(self.machines, self.hosts, self.threads)


@dataclass(frozen=True)
class Found:
    """The machines that a master gives, and the cores of each."""

    machines: int
    cores: int


def find_machines(master: str) -> Found:
    """An executor per machine, as large as the cluster's own settings make it."""
    spark = session(master)
    await_executor(spark)
    capacity = capacity_of(spark)
    until = time.monotonic() + PATIENCE_S
    # Executors come one after another; those that were there for three looks are all.
    slots, same = 0, 0
    while same < 3 and time.monotonic() < until:
        time.sleep(1.0)
        now = capacity().slots
        slots, same = now, same + 1 if now == slots else 0
    machines = max(1, int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1)
    return Found(machines, max(1, slots // machines))


def measure_platform(
    kind: str,
    machines: int,
    hosts: int,
    threads: int,
    *,
    master: str,
    extra: dict[str, str] | None = None,
    folder: str | None = None,
    warm_up_s: float,
    seconds: float,
) -> Borne:
    """Tuples per second after a warm-up. `folder`: where all machines see the base."""
    graph = filter_flow(kind, threads, constant(OFFERED_PER_S, warm_up_s + seconds + 300.0))
    spark = session(master, extra)
    ticks: list[tuple[float, int, float, float]] = []

    def add(tick: Tick) -> None:
        counts = tick.counts("filter")
        ticks.append((tick.ended_s, counts.processed, counts.busy_s, counts.cpu_s))

    with _running(graph, spark, hosts, folder, add) as handle:
        _await(lambda: len(handle.status.hosts) >= hosts, handle, f"{hosts} hosts")
        _await(lambda: any(tick[1] for tick in ticks), handle, "the first tuples")
        time.sleep(warm_up_s)
        local = is_local(master)
        began, before = time.time(), tree_usage()
        time.sleep(seconds)
        took, after = time.time() - began, tree_usage()
    inside = [tick for tick in ticks if began <= tick[0] <= began + took]
    if len(inside) < 2 or not sum(tick[1] for tick in inside[1:]):
        raise RunFailed(f"bench: nothing was served in {seconds:g} s; this machine is too busy to be measured")
    span_s = inside[-1][0] - inside[0][0]
    served, busy_s, cpu_s = (sum(tick[n] for tick in inside[1:]) for n in (1, 2, 3))
    return Borne(
        kind,
        machines,
        hosts,
        threads,
        served / span_s,
        busy_s / served,
        cpu_s / served,
        (after.cpu_s - before.cpu_s) / took if local else None,
        after.resident_bytes / 2**20 if local else None,
        span_s,
    )


@contextmanager
def _running(
    graph: Graph, spark: SparkSession, hosts: int, folder: str | None, listener: Callable[[Tick], object]
) -> Iterator[Handle]:
    """A run with exactly so many hosts, also more than there are cores, on a base of its own."""
    await_executor(spark)
    capacity = capacity_of(spark)
    bind = "127.0.0.1" if is_local(str(spark.sparkContext.master)) else str(spark.conf.get("spark.driver.host"))
    base = tempfile.mkdtemp(prefix="elastream-bench-", dir=folder)
    link, machines = SparkHosts(spark, bind), FixedMachines(lambda: hosts)

    def start_hosts(program: Program) -> None:
        check_executors(spark, program)
        link.start(program)

    try:
        with assemble(
            graph,
            Store(base),
            Plan(Settings(queues=QueueSettings(q_size=Q_SIZE)), benchmark_s=0.0, listeners=[listener]),
            link,
            start_hosts,
            lambda made: Handle(made, spark),
            machines=machines,
            slots=lambda: capacity().slots,
        ) as handle:
            yield handle
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _await(until: Callable[[], bool], handle: Handle, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not until():
        if not handle.active or time.monotonic() > deadline:
            raise RunFailed(f"bench: expected {what} within {PATIENCE_S:.0f} s; is there room for so many?")
        time.sleep(0.02)
