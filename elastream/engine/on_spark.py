"""`start` and `run`: from an application to a stream that flows on Spark."""

import shutil
import tempfile
from collections.abc import Callable, Iterable

from pyspark.sql import SparkSession

from elastream.connectors.query.connect import ConnectedEdges, has_edges
from elastream.connectors.query.spark_handle import Handle
from elastream.control import Guards, Policy
from elastream.engine.assemble import Parts, Plan, assemble
from elastream.engine.before_start import check_before_start
from elastream.engine.blocking import blocking
from elastream.engine.driver.ports import Tick
from elastream.engine.fresh import begin_anew
from elastream.engine.handle import Run, RunListener
from elastream.engine.hosts.spark_hosts import SparkHosts
from elastream.engine.spark.executors import await_executor, capacity_of, check_executors
from elastream.engine.spark.jars import check_jars
from elastream.engine.spark.masters import is_local
from elastream.engine.spark.session import chosen_master, is_submitted, session, use_session
from elastream.engine.worker.program import Program
from elastream.errors import SettingError
from elastream.fleet.machines import FixedMachines
from elastream.fleet.spark_fleet import SparkMachines
from elastream.lanes import Store
from elastream.settings import Settings
from elastream.topology import App, graph_of
from elastream.user_code import refuse_run


def start(
    app: App,
    base: str | None = None,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    settings: Settings | None = None,
    policy: str | Policy | None = "elastic",
    td_s: float | None = None,
    guards: Guards | None = None,
    benchmark_s: float = 2.0,
    checkpoint: str | None = None,
    discard: tuple[str, ...] = (),
    models: str | None = None,
    latency_ms: float | None = None,
    per_second: float | None = None,
    listeners: Iterable[RunListener | Callable[[Tick], object]] = (),
    fresh: bool = False,
    record: str | None = None,
) -> Handle:
    """Start an application and return its handle at once: `with start(app, base) as handle:` stops it at the end of the block.

    app          a Topology, any Stream of it, or a built Graph
    base         the directory in which its tuples wait, on any filesystem that pyarrow opens; the same base continues where
                 it was. Default: a new directory on this machine
    spark        the session to use; default: one is made, in processes of this machine or on `master`
    settings     limits of queues, errors, state and works: see `Settings`
    policy       decides the replicas: a name, `module:Class`, `file.py:Class` or a `Policy`. `elastic`, the default, finishes
                 tuples within a second. None: replicas stay until `handle.scale` is called
    td_s         seconds between two decisions; default: the policy's own pace, else 5
    guards       limits of all decisions: see `Guards`
    benchmark_s  seconds for which operators are timed before the stream flows, if there is a policy
    checkpoint   where Spark keeps the offsets of streaming DataFrames; default: in the base
    discard      operators whose queued tuples and state in the base are dropped first, for example because columns changed
    models       a directory for models that policies learn, shared by runs; the base has them, too
    latency_ms   the latency that the policy shall keep; a policy without such a target says so
    per_second   the input rate that the policy shall be ready for
    listeners    called from the first tick on: functions of a tick, or objects of `RunListener`
    fresh        True: what earlier runs left in the base is deleted first; a directory that is no base is refused
    record       a new file for everything that reaches the driver: `elastream ticks` makes the same ticks again from it
    """
    refuse_run()
    plan = Plan(
        settings or Settings(),
        policy,
        td_s,
        guards or Guards(),
        benchmark_s,
        discard,
        models,
        latency_ms,
        per_second,
        listeners,
        record,
    )
    graph = graph_of(app)
    if spark is not None:
        use_session(spark)
    store = _store(base, spark, master)
    check_before_start(graph, store, plan, fresh=fresh)
    if fresh and checkpoint is not None:
        raise SettingError(
            f"fresh: deletes the base and not the checkpoint {checkpoint}; delete that, and leave fresh out"
        )
    if spark is None and not is_submitted():
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

    def handle_of(made: Run) -> Handle:
        made.at_close.append(lambda: shutil.rmtree(folder, ignore_errors=True))
        if isinstance(machines, SparkMachines):
            made.at_close.append(machines.close)
        return Handle(made, spark)

    def start_hosts(program: Program) -> None:
        check_executors(spark, program)
        hosts.start(program)

    try:
        if fresh:
            begin_anew(store)
        return assemble(
            graph,
            store,
            plan,
            hosts,
            start_hosts,
            handle_of,
            machines=machines,
            slots=lambda: capacity().slots,
            connect=connect if edges else None,
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


run = blocking(start)


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
