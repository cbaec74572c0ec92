"""The edges of a run, put together: only the parts that its graph has."""

from pyspark.sql import SparkSession

from elastream.connectors.query.edges import SparkEdges
from elastream.connectors.query.query import EdgeQuery
from elastream.connectors.query.sink_jobs import SinkJobs
from elastream.connectors.query.source_progress import SourceProgress
from elastream.connectors.spark_source import SparkSource
from elastream.engine.assemble import Parts
from elastream.engine.driver.lifecycle import RunLife
from elastream.engine.driver.ports import EdgeBatch, SinkJob
from elastream.engine.messages import Receipt
from elastream.errors import ElastreamError, SettingError
from elastream.lanes import Store
from elastream.topology import Graph, Kind

CHECKPOINT = "checkpoint"
"""The folder of a base in which Spark's checkpoint is."""

PAUSE_S = 10.0
"""How long Spark may take to commit its last batch before a drain goes on."""


def has_edges(graph: Graph) -> bool:
    """True when Spark serves a part of it."""
    streams = any(isinstance(source.source, SparkSource) for source in graph.sources)
    return streams or any(operator.by_spark for operator in graph.operators)


class ConnectedEdges:
    """The edge query and the jobs of sinks, as far as there are any."""

    def __init__(self, spark: SparkSession, parts: Parts, checkpoint: str | None, folder: str) -> None:
        graph = parts.program.graph
        self._progress = SourceProgress(graph)
        self.edges = SparkEdges(
            graph,
            parts.program.settings,
            parts.tables,
            self._progress,
            folder,
        )
        self._life: RunLife | None = None
        self.query: EdgeQuery | None = None
        self.edges.open()
        frames = any(operator.kind is Kind.DATAFRAME for operator in graph.operators)
        if self._progress or frames:

            def place(lasts: bool) -> str:
                return _checkpoint(lasts, parts.store, checkpoint, folder)

            self.query = EdgeQuery(
                spark, parts.program, parts.store, parts.tables.state, self.edges, self._progress, place, folder
            )
        self._jobs = SinkJobs(spark, parts.program, self._written)

    def start(self, life: RunLife) -> None:
        self._life = life
        self.edges.write_job = self._jobs.write
        if self.query is not None:
            self.query.start(life)

    def stop_reading(self) -> None:
        """Read no more from streaming sources in this run.

        Not called in the tick's thread, which has to commit the last batch.
        """
        if self.query is None:
            return
        if self.query.frames and self._progress:
            raise SettingError(
                "drain: dataframe operators and streaming sources share one query of Spark's, so reading cannot be stopped "
                "alone; stop the run instead: what waits is served by the next one"
            )
        if not self.query.frames:
            self.query.pause(PAUSE_S)

    def close(self) -> None:
        if self.query is not None:
            self.query.stop()
        self._jobs.close()

    def unread(self) -> dict[str, int]:
        return self._progress.unread()

    def lag(self) -> dict[str, dict[str, int]]:
        return self._progress.lag()

    def _written(self, sink: str, result: "list[Receipt] | ElastreamError") -> None:
        """In a job's thread: it has ended."""
        assert self._life is not None
        life = self._life
        if isinstance(result, ElastreamError):
            life.fail(result)
            return
        self.edges.leave(EdgeBatch(result, SinkJob(sink)))
        life.wake()


def _checkpoint(lasts: bool, store: Store, asked: str | None, folder: str) -> str:
    """Where Spark's checkpoint is.

    The offsets of streaming sources and the state of dataframe operators are in it: then it must last as long as the base.
    Otherwise the ledger knows everything, and the checkpoint is thrown away with the run.
    """
    if not lasts:
        return f"file://{folder}/checkpoint"
    if asked is None and not store.is_local:
        raise SettingError(
            f"base {store}: not on a local disk, so say where Spark's checkpoint is: checkpoint='s3a://...'"
        )
    if asked is None:
        # Spark gives its files the usual permissions, so nobody else may enter their folder.
        store.make_folder(CHECKPOINT)
    return asked or f"file://{store.local_path}/{CHECKPOINT}"
