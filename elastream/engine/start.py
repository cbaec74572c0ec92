"""`run`: from a topology to a stream that flows."""

import shutil
import tempfile
import time
import uuid

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.control import ControlLoop, Guards, Journal, Policy, checked_td
from elastream.engine.base_id import base_id
from elastream.engine.benchmark import benchmark
from elastream.engine.branches import branch
from elastream.engine.checkpoints import Checkpoint
from elastream.engine.driver import Driver
from elastream.engine.executors import await_executor, capacity_of, check_executors
from elastream.engine.frame_task import ROUTING
from elastream.engine.frames import Frames, keep_branches
from elastream.engine.handle import Handle
from elastream.engine.jars import check_jars
from elastream.engine.masters import is_local
from elastream.engine.plant import EnginePlant
from elastream.engine.program import Program
from elastream.engine.session import (
    FRAME_SETTINGS,
    check_session,
    chosen_master,
    is_submitted,
    settings_of_query,
    tick_session,
)
from elastream.engine.settings import Settings
from elastream.engine.settle import raise_first_error
from elastream.engine.sources import Replay, Stream
from elastream.engine.state_rescale import undo_unfinished
from elastream.engine.tick_source import Mailbox, tick_source
from elastream.engine.work import Receipt
from elastream.engine.writing import Writing
from elastream.errors import RunFailed, SettingError
from elastream.lanes import Store
from elastream.policies import make_policy
from elastream.topology import Graph, Topology


def run(
    topology: Topology | Graph,
    base: str | None = None,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    settings: Settings | None = None,
    policy: str | Policy | None = None,
    td_s: float = 5.0,
    guards: Guards | None = None,
    benchmark_s: float = 2.0,
    checkpoint: str | None = None,
    discard: tuple[str, ...] = (),
) -> Handle:
    """Start a topology. `base` is the directory in which its tuples wait; the same base goes on where it was.

    Without `spark` a session is made: `local[...]` with a slot for each lane, or on `master`. `checkpoint` is where Spark
    keeps the offsets of streaming DataFrames (default: inside a local base).

    With a `policy`, a name or an object, the replicas are decided every `td_s` seconds, within the `guards`; before the
    stream flows, its operators are timed for `benchmark_s` seconds. Without one they stay until `handle.scale` is called.
    """
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    checked_td(td_s)
    if benchmark_s < 0:
        raise SettingError(f"benchmark_s must be 0 or more, got {benchmark_s}; 0 means no benchmark")
    graph = topology.build() if isinstance(topology, Topology) else topology
    if chosen is not None and hasattr(chosen, "foresee"):
        # Only what is replayed can be foreseen.
        chosen.foresee(tuple(s.source.arrivals for s in graph.sources if isinstance(s.source, Replay)))
    settings = settings or Settings()
    at = str(spark.sparkContext.master) if spark is not None else chosen_master(master) or "local"
    if base is None and not is_local(at):
        raise SettingError(
            f"base: on {at} name a directory that all its machines see: base='/shared/...' or 's3://...'"
        )
    store = Store(base or tempfile.mkdtemp(prefix="elastream-"))
    base = store.uri
    lanes = sum(operator.replicas.most for operator in graph.served) + len(graph.sources)
    if spark is not None:
        check_session(spark)
    elif not is_submitted():
        check_jars(graph)
    for sink in graph.operators:
        if sink.writer is not None:
            sink.writer.check(sink.name, sink.schema)
    workdir = tempfile.mkdtemp(prefix="elastream-driver-")
    mailbox = Mailbox(workdir)
    streams = any(isinstance(source.source, Stream) for source in graph.sources)
    checkpoint_at = _checkpoint(streams, store, checkpoint, workdir)
    session = spark or tick_session(master, lanes)
    driver = Driver(graph, settings, store, mailbox, capacity=capacity_of(session), td_s=td_s)
    try:
        check_jars(graph, session)
        await_executor(session)
        driver.open(discard, chosen.start if chosen else None)
        program = Program(graph, settings, base, base_id(store))
        check_executors(session, program)
        loop, timed = None, {}
        if chosen is not None:
            timed = benchmark(session, graph, program.to_bytes(), benchmark_s) if benchmark_s else {}
            driver.know(timed)
            loop = _loop(driver, chosen, td_s, guards or Guards(), store)

        writing = Writing(session, program)
        driver.at_close.append(writing.close)
        frames = Frames(session, program, workdir, f"elastream-lanes-{uuid.uuid4().hex}")
        driver.stateful = frames.stateful
        if frames.stateful:
            checkpoint_at = _checkpoint(True, store, checkpoint, workdir)
            undo_unfinished(store, Checkpoint(session, checkpoint_at))
        if frames and (streams or frames.stateful):
            keep_branches(store, graph)

        def start() -> StreamingQuery:
            return _start(session, driver, writing, frames, workdir, checkpoint_at, program)

        query = start()
    except BaseException:
        driver.close()
        shutil.rmtree(workdir, ignore_errors=True)
        raise
    return Handle(graph, base, driver, query, session, workdir, start, checkpoint_at, loop, timed)


def _loop(driver: Driver, policy: Policy, td_s: float, guards: Guards, store: Store) -> ControlLoop:
    loop = ControlLoop(EnginePlant(driver), policy, td_s=td_s, guards=guards, journal=Journal(store), clock=time.time)
    driver.control = loop.step
    driver.elastic = policy.start is None and not guards.dry_run
    return loop


def _start(
    spark: SparkSession,
    driver: Driver,
    writing: Writing,
    frames: Frames,
    workdir: str,
    checkpoint: str,
    program: Program,
) -> StreamingQuery:
    graph, travelling = program.graph, program.to_bytes()
    name = f"elastream-ticks-{uuid.uuid4().hex}"
    spark.dataSource.register(tick_source(name, workdir, travelling))
    frame = spark.readStream.format(name).load()
    for source, rows in driver.streams.frames(spark, driver.book).items():
        frame = frame.union(branch(graph[source], rows, travelling))
    for receipts_of in frames.branches:
        frame = frame.union(receipts_of)
    queries: list[StreamingQuery] = []

    def tick(batch: DataFrame, number: int) -> None:
        # The same for as long as the checkpoint is.
        query = spark.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
        applied = driver.is_applied(query, number)
        if applied and not frames.stateful:
            return
        if driver.parked.is_set() or driver.restart.is_set() or driver.paused.is_set():
            # Asked to stop, and Spark was quicker to begin a batch than we to stop the query: it will be read again.
            raise RunFailed("the run is over")
        try:
            if applied:
                _run_again(spark, driver, frames, batch)
                return
            driver.check_checkpoint(query)
            if driver.streams or frames:
                spark.sparkContext.setLocalProperty(ROUTING, driver.routing())
            if driver.streams:
                driver.streams.hear(_newest_report(queries))
            frames.forget()
            with writing.beside(driver.writes()) as written:
                receipts = [Receipt.from_json(row.receipt) for row in batch.collect()]
                receipts += written()
            receipts += frames.receipts(driver.frame_tasks)
            driver.finish_tick(query, number, receipts)
        except BaseException as error:
            driver.error = driver.error or error
            raise

    asked = FRAME_SETTINGS | {"spark.sql.shuffle.partitions": str(program.settings.state_partitions)} if frames else {}
    with settings_of_query(spark, asked):
        queries.append(
            frame.writeStream.foreachBatch(tick)
            .outputMode(frames.output_mode)
            .option("checkpointLocation", checkpoint)
            .queryName(f"{graph.name}-{uuid.uuid4().hex[:8]}")
            .trigger(processingTime="0 seconds")
            .start()
        )
    return queries[0]


def _run_again(spark: SparkSession, driver: Driver, frames: Frames, batch: DataFrame) -> None:
    """The ledger has what came of this batch, but Spark's state of it may not be there."""
    spark.sparkContext.setLocalProperty(ROUTING, "")
    frames.forget()
    batch.collect()
    raise_first_error(frames.receipts(driver.again_tasks))


def _newest_report(queries: list[StreamingQuery]) -> str | None:
    """What Spark says of the batch before, as JSON: its Python form would take a hundred calls to make."""
    report = queries[0]._jsq.lastProgress() if queries else None
    return None if report is None else str(report.json())


def _checkpoint(lasts: bool, store: Store, asked: str | None, workdir: str) -> str:
    """Where Spark's checkpoint is.

    With replays only the ledger knows everything, and the checkpoint is thrown away with the process. The offsets of
    streaming DataFrames and the state of dataframe operators are Spark's: their checkpoint must last as long as the base.
    """
    if not lasts:
        return f"file://{workdir}/checkpoint"
    if asked is None and not store.is_local:
        raise SettingError(
            f"base {store}: not on a local disk, so say where Spark's checkpoint is: checkpoint='s3a://...'"
        )
    return asked or f"file://{store.local_path}/checkpoint"
