"""`run`: from a topology to a stream that flows on Spark."""

import shutil
import tempfile
from collections.abc import Callable

from pyspark.sql import SparkSession

from elastream.control import Guards, Policy
from elastream.engine.assemble import Parts, Plan, assemble
from elastream.engine.edges.connect import ConnectedEdges, has_edges
from elastream.engine.edges.spark_handle import Handle
from elastream.engine.hosts.spark_hosts import SparkHosts
from elastream.engine.spark.executors import await_executor, capacity_of, check_executors
from elastream.engine.spark.jars import check_jars
from elastream.engine.spark.masters import is_local
from elastream.engine.spark.session import check_session, chosen_master, is_submitted, session
from elastream.engine.worker.program import Program
from elastream.errors import SettingError
from elastream.fleet.machines import FixedMachines
from elastream.fleet.spark_fleet import SparkMachines
from elastream.lanes import Store
from elastream.settings import Settings
from elastream.topology import Graph, Topology


def run(
    topology: Topology | Graph,
    base: str | None = None,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    settings: Settings | None = None,
    policy: str | Policy | None = "elastic",
    td_s: float = 5.0,
    guards: Guards | None = None,
    benchmark_s: float = 2.0,
    checkpoint: str | None = None,
    discard: tuple[str, ...] = (),
    models: str | None = None,
    latency_ms: float | None = None,
    per_second: float | None = None,
) -> Handle:
    """Start a topology. `base` is the directory in which its tuples wait; the same base goes on where it was.

    Without `spark` a session is made: in this machine's processes, or on `master`. `checkpoint` is where Spark
    keeps the offsets of streaming DataFrames (default: inside a local base).

    The `policy`, a name or an object, decides the replicas every `td_s` seconds or as often as it asks to, within the
    `guards`; before the stream flows, its operators are timed for `benchmark_s` seconds. By default it is `elastic`, which
    keeps tuples within a second. With None nothing is timed, and the replicas stay until `handle.scale` is called.
    `models` is a directory in which policies that learn keep their models for other runs; the base has them, too.
    `latency_ms` is the latency that a policy shall keep, `per_second` the input rate it shall be ready for; one that has no
    such target says so.
    """
    plan = Plan(
        settings or Settings(), policy, td_s, guards or Guards(), benchmark_s, discard, models, latency_ms, per_second
    )
    graph = topology.build() if isinstance(topology, Topology) else topology
    store = _store(base, spark, master)
    if spark is not None:
        check_session(spark)
    elif not is_submitted():
        check_jars(graph)
    for sink in graph.operators:
        if sink.writer is not None:
            sink.writer.check(sink.name, sink.schema)
    spark = spark or session(master)
    check_jars(graph, spark)
    await_executor(spark)
    capacity = capacity_of(spark)
    edges = has_edges(graph)
    hosts = SparkHosts(spark, _bind(spark))
    machines = _machines(spark, lambda: capacity().hosts(edges))
    folder = tempfile.mkdtemp(prefix="elastream-driver-")

    def connect(parts: Parts) -> ConnectedEdges:
        return ConnectedEdges(spark, parts, checkpoint, folder)

    def start_hosts(program: Program) -> None:
        check_executors(spark, program)
        hosts.start(program)

    try:
        made = assemble(
            graph,
            store,
            plan,
            hosts,
            start_hosts,
            machines=machines,
            slots=lambda: capacity().slots,
            connect=connect if edges else None,
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    made.at_close.append(lambda: shutil.rmtree(folder, ignore_errors=True))
    if isinstance(machines, SparkMachines):
        made.at_close.append(machines.close)
    return Handle(made, spark)


def _store(base: str | None, spark: SparkSession | None, master: str | None) -> Store:
    at = str(spark.sparkContext.master) if spark is not None else chosen_master(master) or "local"
    if base is None and not is_local(at):
        raise SettingError(
            f"base: on {at} name a directory that all its machines see: base='/shared/...' or 's3://...'"
        )
    return Store(base or tempfile.mkdtemp(prefix="elastream-"))


def _machines(spark: SparkSession, room: Callable[[], int]) -> FixedMachines | SparkMachines:
    if is_local(str(spark.sparkContext.master)):
        return FixedMachines(room)
    allocated = spark.sparkContext.getConf().get("spark.dynamicAllocation.enabled") == "true"
    return SparkMachines(spark, room, ours=not allocated)


def _bind(spark: SparkSession) -> str:
    """Where the driver listens for hosts: on loopback, or where the executors find it."""
    if is_local(str(spark.sparkContext.master)):
        return "127.0.0.1"
    return str(spark.sparkContext.getConf().get("spark.driver.host", "127.0.0.1"))
