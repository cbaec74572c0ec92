"""The edges of a run, put together: only the parts that its graph has."""

from pyspark.sql import SparkSession

from elastream.connectors.query.edges import SparkEdges
from elastream.connectors.query.query import EdgeQuery
from elastream.connectors.query.sink_jobs import SinkJobs
from elastream.connectors.query.source_progress import SourceProgress
from elastream.connectors.query.stream import Stream
from elastream.engine.assemble import Parts
from elastream.engine.messages import Receipt
from elastream.engine.tick.life import RunLife
from elastream.engine.tick.ports import EdgeBatch
from elastream.errors import ElastreamError, SettingError
from elastream.lanes import Store
from elastream.topology import Graph, Kind

CHECKPOINT = "checkpoint"
"""The folder of a base in which Spark's checkpoint is."""


def has_edges(graph: Graph) -> bool:
    """True when Spark serves a part of it."""
    streams = any(isinstance(source.source, Stream) for source in graph.sources)
    return streams or any(operator.by_spark for operator in graph.operators)


class ConnectedEdges:
    """The edge query and the jobs of sinks, as far as there are any."""

    def __init__(self, spark: SparkSession, parts: Parts, checkpoint: str | None, folder: str) -> None:
        graph = parts.program.graph
        self._progress = SourceProgress(graph)
        self.edges = SparkEdges(
            graph,
            parts.program.settings,
            parts.state,
            parts.estimates,
            parts.planner,
            parts.loads,
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
                spark, parts.program, parts.store, parts.state, self.edges, self._progress, place, folder
            )
        self._jobs = SinkJobs(spark, parts.program, self._written)

    def start(self, life: RunLife) -> None:
        self._life = life
        self.edges.write_job = self._jobs.write
        if self.query is not None:
            self.query.start(life)

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
        self.edges.leave(EdgeBatch(result, committed=lambda: self.edges.sink_written(sink, life.now())))
        life.call()


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
