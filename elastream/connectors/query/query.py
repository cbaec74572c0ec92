"""The edge query: one Structured Streaming query for the streaming sources and the dataframe operators of a graph.

Its micro-batch is the clock of nothing but itself. In `foreachBatch` the receipts of its tasks are handed to the tick, and the
batch is over when the tick has committed them: a batch that Spark repeats is in the ledger, or it is not.
"""

import contextlib
import threading
import uuid
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.connectors.dataframes.checkpoint import Checkpoint
from elastream.connectors.dataframes.operators import DataframeOperators, keep_branches
from elastream.connectors.dataframes.state_rescale import undo_unfinished
from elastream.connectors.query.edges import SparkEdges
from elastream.connectors.query.source_branch import ROUTING, source_branch
from elastream.connectors.query.source_progress import SourceProgress
from elastream.connectors.query.task import to_text
from elastream.connectors.spark_sink import SparkSink
from elastream.connectors.spark_source import SparkSource
from elastream.engine import messages
from elastream.engine.driver.commit.merge import first_problem
from elastream.engine.driver.lifecycle import Phase, RunLife
from elastream.engine.driver.ports import EdgeBatch, QueryBatch, SourcesEnded
from elastream.engine.event_times import event_time_origins
from elastream.engine.messages import Receipt
from elastream.engine.spark.java_errors import GONE, is_gone, java_reason
from elastream.engine.spark.session import FRAME_SETTINGS, QUERY_SETTINGS, settings_of_query
from elastream.engine.worker.program import Program
from elastream.errors import ElastreamError, RunFailed, SettingError
from elastream.lanes import LedgerState, Store
from elastream.topology import Graph

LOOK_MS = 200
"""Between two looks at Spark's report on the query."""


class EdgeQuery:
    """Of one run. It is made before the run begins, and started when the tick is."""

    def __init__(
        self,
        spark: SparkSession,
        program: Program,
        store: Store,
        state: LedgerState,
        edges: SparkEdges,
        progress: SourceProgress,
        checkpoint: Callable[[bool], str],
        folder: str,
    ) -> None:
        """`checkpoint` says where Spark's is, and is told whether it must last as long as the base."""
        self._spark = spark
        self._program = program
        self._store = store
        self._state = state
        self._edges = edges
        self._progress = progress
        self._life: RunLife | None = None
        self._query: StreamingQuery | None = None
        self._in_batch = threading.Lock()
        self.frames = DataframeOperators(spark, program, folder, f"elastream-lanes-{uuid.uuid4().hex}")
        edges.stateful = self.frames.stateful
        self.checkpoint = Checkpoint(spark, checkpoint(bool(progress or self.frames.stateful)))
        if self.frames.stateful:
            undo_unfinished(store, self.checkpoint)
        if self.frames and (progress or self.frames.stateful):
            keep_branches(store, program.graph)
        self._union = self._branches()

    def start(self, life: RunLife) -> None:
        self._life = life
        asked = dict(QUERY_SETTINGS)
        if self.frames:
            asked |= FRAME_SETTINGS | {"spark.sql.shuffle.partitions": str(self._program.settings.state.partitions)}
        with settings_of_query(self._spark, asked):
            query = (
                self._union.writeStream.foreachBatch(self._batch)
                .outputMode(self.frames.output_mode)
                .option("checkpointLocation", self.checkpoint.path)
                .queryName(f"{self._program.graph.name}-{uuid.uuid4().hex[:8]}")
                .trigger(processingTime="0 seconds")
                .start()
            )
        self._query = query
        threading.Thread(target=self._watch, args=(query, life), name="elastream-edge", daemon=True).start()

    def stop(self) -> None:
        """How it goes down does not matter: everything committed is committed."""
        query, self._query = self._query, None
        if query is not None:
            with contextlib.suppress(PySparkException, Py4JError, OSError):
                query.stop()

    @property
    def has_work(self) -> bool:
        """True while something is offered that no batch has taken."""
        return self._edges.has_offer

    def pause(self, patience_s: float) -> bool:
        """Stop the query between two batches; says whether Spark has committed the last one that the ledger has."""
        self._edges.paused = True
        with self._in_batch:
            # The batch that was under way is over. One that Spark begins from now on is refused; it must not find this lock
            # taken, for Spark's stop waits until its thread has come back from us.
            pass
        committed = self.checkpoint.wait_until_committed(self._state.batch, patience_s)
        self.stop()
        return committed

    def resume(self) -> None:
        """Start it again, with the same branches."""
        assert self._life is not None
        self._union = self._branches()
        self._edges.reopen()
        self._edges.paused = False
        self.start(self._life)

    # -- Spark's stream thread

    def _batch(self, batch: DataFrame, number: int) -> None:
        assert self._life is not None
        life = self._life
        with self._in_batch:
            context = self._spark.sparkContext
            # The same for as long as the checkpoint is.
            query = context.getLocalProperty("sql.streaming.queryId") or ""
            try:
                if self._state.query == query and number <= self._state.batch:
                    if self.frames.stateful:
                        self._run_again(batch, life)
                    return
                if self._edges.paused or life.phase is Phase.OVER or life.phase is Phase.STOPPING:
                    # Spark was quicker to begin a batch than we to stop the query: it will be read again.
                    raise RunFailed("the run is over")
                self._check_checkpoint(query)
                self._run(batch, number, query, life)
            except BaseException as error:
                if self._matters(life):
                    life.fail(self._shown(error))
                raise

    def _run(self, batch: DataFrame, number: int, query: str, life: RunLife) -> None:
        context = self._spark.sparkContext
        routing = life.ask(lambda: self._edges.routing(life.wall_s()))
        context.setLocalProperty(ROUTING, to_text(routing))
        self.frames.forget()
        planned = dict(self._edges.planned)
        routed = [messages.decode_receipt(bytes(row.receipt)) for row in batch.collect()]
        receipts, offer_read = self.frames.receipts(planned, routed)
        self._commit(receipts, offer_read, number, query, life)

    def _commit(self, receipts: list[Receipt], offer_read: bool, number: int, query: str, life: RunLife) -> None:
        batch = QueryBatch(query, number, offer_read)
        self._edges.leave(EdgeBatch(receipts, batch))
        life.wake()
        while not self._edges.await_commit(batch, 0.2):
            if life.phase is Phase.OVER:
                raise RunFailed("the run is over")

    def _run_again(self, batch: DataFrame, life: RunLife) -> None:
        """The ledger has what came of this batch, but Spark's state of it may not be there."""
        routing = life.ask(lambda: self._edges.discarding(life.wall_s()))
        self._spark.sparkContext.setLocalProperty(ROUTING, to_text(routing))
        self.frames.forget()
        batch.collect()
        receipts, _ = self.frames.receipts(self._edges.planned_again, [])
        problem = first_problem(receipts)
        if problem is not None:
            raise problem

    # -- inside

    def _branches(self) -> DataFrame:
        graph, travelling = self._program.graph, self._program.to_bytes()
        timed = event_time_origins(graph)
        frames = [
            source_branch(graph[name], rows, travelling, timed=any(o.name in timed for o in graph.chain(name)))
            for name, rows in self._progress.frames(self._spark, self._state).items()
        ]
        frames += self.frames.branches
        union = frames[0]
        for frame in frames[1:]:
            union = union.union(frame)
        return union

    def _check_checkpoint(self, query: str) -> None:
        self._progress.check_checkpoint(self._state, query, str(self._store))
        if self._state.reread and self._state.query != query:
            raise SettingError(
                f"base {self._store}: was written with another checkpoint of Spark's, which has the state of its dataframe "
                "operators; give that one back, or begin with a new base"
            )

    def _note_ends(self, life: RunLife) -> None:
        """A source that is over is said to be so in the ledger."""
        if not any(self._progress.is_over(name) for name in self._progress.states):
            return

        if self._progress.ended(self._state):
            self._edges.leave(EdgeBatch([], SourcesEnded()))
            life.wake()

    def _watch(self, query: StreamingQuery, life: RunLife) -> None:
        """Until the query ends: by itself means that the run cannot go on. Meanwhile, how far Spark has read the sources."""
        error: Exception | None = None
        heard: str | None = None
        try:
            while not query._jsq.awaitTermination(LOOK_MS):
                report = query._jsq.lastProgress() if self._progress else None
                if report is not None and (text := str(report.json())) != heard:
                    heard = text
                    self._progress.hear(heard)
                    self._note_ends(life)
        except Exception as raised:
            error = raised
        if self._query is query and self._matters(life):
            life.fail(self._shown(error or RunFailed("Spark has ended the query")))

    def _matters(self, life: RunLife) -> bool:
        """True when the end of a batch or of the query is the end of the run: not when somebody has asked for it."""
        return not self._edges.paused and life.phase not in (Phase.STOPPING, Phase.OVER)

    def _shown(self, error: BaseException) -> ElastreamError:
        """An error as the user may see it: in our words, without secrets."""
        if isinstance(error, ElastreamError):
            return error
        if is_gone(error):
            return RunFailed(GONE)
        return RunFailed(
            f"tick {self._state.entry + 1} failed, nothing of it was applied: {redacted(self._program.graph, java_reason(error))}"
        )


def redacted(graph: Graph, text: str) -> str:
    for operator in graph.operators:
        for spec in (operator.source, operator.writer):
            if isinstance(spec, SparkSource | SparkSink):
                text = spec.redact(text)
    return text
