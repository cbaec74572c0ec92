"""`run`: from a topology to a stream that flows, and the handle by which it is watched, scaled and stopped."""

import shutil
import tempfile
import time
import uuid
from types import TracebackType

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.control import Observation
from elastream.engine.branches import ROUTING, branch
from elastream.engine.driver import Driver
from elastream.engine.outputs import read_output, stream_output
from elastream.engine.program import DEAD_LETTERS, Program
from elastream.engine.session import check_session, cores_of, slots_of, tick_session
from elastream.engine.settings import Settings
from elastream.engine.sources import Stream
from elastream.engine.tick_source import Mailbox, tick_source
from elastream.engine.work import Receipt
from elastream.errors import ElastreamError, RunFailed, SettingError
from elastream.lanes import Audit, Book, Store, audit
from elastream.lanes.sealed import seal, unseal
from elastream.topology import DUE, Graph, Kind, Topology


def run(
    topology: Topology | Graph,
    base: str | None = None,
    *,
    spark: SparkSession | None = None,
    master: str | None = None,
    settings: Settings | None = None,
    checkpoint: str | None = None,
    discard: tuple[str, ...] = (),
) -> "Handle":
    """Start a topology. `base` is the directory in which its tuples wait; the same base goes on where it was.

    Without `spark` a session is made: `local[...]` with a slot for each lane, or on `master`. `checkpoint` is where Spark
    keeps the offsets of streaming DataFrames (default: inside a local base).
    """
    graph = topology.build() if isinstance(topology, Topology) else topology
    settings = settings or Settings()
    temporary = base is None
    base = base or tempfile.mkdtemp(prefix="elastream-")
    store = Store(base)
    lanes = sum(operator.replicas.most for operator in graph.served) + len(graph.sources)
    if spark is not None:
        check_session(spark)
    workdir = tempfile.mkdtemp(prefix="elastream-driver-")
    mailbox = Mailbox(workdir)
    checkpoint_at, run_id = _checkpoint(graph, store, checkpoint, workdir)
    session = spark or tick_session(master, lanes)
    driver = Driver(graph, settings, store, run_id, mailbox, slots=slots_of(session), cores=cores_of(session))
    driver.open(discard)
    try:
        program = Program(graph, settings, base, _base_id(store)).to_bytes()
        query = _start(session, graph, driver, workdir, checkpoint_at, program)
    except BaseException:
        driver.close()
        shutil.rmtree(workdir, ignore_errors=True)
        raise
    return Handle(graph, base, driver, query, session, workdir, temporary)


def _start(
    spark: SparkSession, graph: Graph, driver: Driver, workdir: str, checkpoint: str, program: bytes
) -> StreamingQuery:
    name = f"elastream-ticks-{uuid.uuid4().hex}"
    spark.dataSource.register(tick_source(name, workdir, program))
    frame = spark.readStream.format(name).load()
    for source in graph.sources:
        if isinstance(source.source, Stream):
            frame = frame.union(branch(spark, source, program))
    has_branches = any(isinstance(source.source, Stream) for source in graph.sources)

    def tick(batch: DataFrame, number: int) -> None:
        if driver.is_applied(number):
            return
        try:
            if driver.parked.is_set():
                raise RunFailed("the run is over; this batch will be read again when it goes on")
            if has_branches:
                spark.sparkContext.setLocalProperty(ROUTING, driver.routing())
            driver.finish_tick(number, [Receipt.from_json(row.receipt) for row in batch.collect()])
        except BaseException as error:
            driver.error = driver.error or error
            raise

    return (
        frame.writeStream.foreachBatch(tick)
        .option("checkpointLocation", checkpoint)
        .queryName(f"{graph.name}-{uuid.uuid4().hex[:8]}")
        .trigger(processingTime="0 seconds")
        .start()
    )


def _checkpoint(graph: Graph, store: Store, asked: str | None, workdir: str) -> tuple[str, str]:
    """Where Spark's checkpoint is, and its name in the ledger.

    With replays only the ledger knows everything, and the checkpoint is thrown away with the process. The offsets of
    streaming DataFrames are Spark's: their checkpoint must last as long as the base.
    """
    if not any(isinstance(source.source, Stream) for source in graph.sources):
        return f"file://{workdir}/checkpoint", uuid.uuid4().hex
    if asked is None and not store.is_local:
        raise SettingError(f"base {store}: not on a local disk, so say where Spark's checkpoint is: checkpoint='s3a://...'")
    return asked or f"file://{store.local_path}/checkpoint", "checkpoint"


def _base_id(store: Store) -> str:
    if store.exists("base.json"):
        return str(unseal("base", store.read("base.json"), f"{store}/base.json")["id"])
    identity = uuid.uuid4().hex[:12]
    store.write("base.json", seal("base", {"id": identity}))
    return identity


class Handle:
    """A run in progress. Leaving a `with` block stops it at the next tick boundary."""

    def __init__(
        self, graph: Graph, base: str, driver: Driver, query: StreamingQuery, spark: SparkSession, workdir: str, temporary: bool
    ) -> None:
        self.graph = graph
        self.base = base
        self.spark = spark
        self._driver = driver
        self._query = query
        self._workdir = workdir
        self._temporary = temporary
        self._closed = False

    def scale(self, operator: str, replicas: int) -> None:
        """Change the replicas of an operator from the next tick on. A lane that is switched off is drained."""
        self._driver.scale(operator, replicas)

    def observe(self, seconds: float = 1.0) -> Observation:
        """What happened in the last `seconds`."""
        return self._driver.observe(seconds)

    @property
    def active(self) -> bool:
        """True while ticks may still come."""
        return not self._closed and not self._driver.parked.is_set() and self._query.isActive

    @property
    def book(self) -> Book:
        """The driver's book; look, do not touch."""
        return self._driver.book

    def await_end(self, timeout_s: float | None = None) -> bool:
        """Wait until every source is exhausted and nothing waits; False when the time ran out first."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while self.active:
            left = 0.2 if until is None else min(0.2, until - time.monotonic())
            if left <= 0:
                return False
            self._driver.parked.wait(left)
        self.stop()
        return True

    def stop(self) -> None:
        """Stop at the next tick boundary. What waits in the lanes waits for the next run with this base."""
        if self._closed:
            return
        self._driver.request_stop()
        while self._query.isActive and not self._driver.parked.wait(0.05):
            pass
        self._closed = True
        failure = self._failure()
        try:
            self._query.stop()
        except PySparkException:
            # Everything committed is committed; how the query went down does not matter any more.
            pass
        self._driver.close()
        shutil.rmtree(self._workdir, ignore_errors=True)
        if failure:
            raise failure

    def _failure(self) -> ElastreamError | None:
        """Why the run ended by itself, if it did."""
        error = self._driver.error
        if isinstance(error, ElastreamError):
            return error
        if self._driver.parked.is_set():
            return None
        reason = error or self._query.exception()
        return RunFailed(f"tick {self._driver.book.tick + 1} failed, nothing of it was applied: {_first_lines(reason)}") if reason else None

    def output(self, name: str) -> pa.Table:
        """The tuples that wait in an output, without their due times."""
        self._check_output(name)
        table = read_output(self.base, name)
        return table.drop_columns([DUE]) if DUE in table.column_names else table

    def stream(self, name: str, reader: str = "default") -> DataFrame:
        """An output as a streaming DataFrame."""
        self._check_output(name)
        return stream_output(self.spark, self.base, name, self.graph[name].schema, reader)

    def dead_letters(self) -> pa.Table:
        """The tuples on which an operator raised: which, where, and the error."""
        return read_output(self.base, DEAD_LETTERS)

    def audit(self) -> Audit:
        return audit(Store(self.base))

    def _check_output(self, name: str) -> None:
        if name not in self.graph or self.graph[name].kind is not Kind.OUTPUT:
            outputs = [o.name for o in self.graph.operators if o.kind is Kind.OUTPUT]
            raise SettingError(f"output {name!r}: not an output of {self.graph.name!r}; there are {outputs or 'none'}")

    def __enter__(self) -> "Handle":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def _first_lines(error: BaseException) -> str:
    return "\n".join(str(error).splitlines()[:8])
