"""Streaming sources, as a run opens them."""

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from elastream import Topology
from elastream.connectors.query.source_progress import SourceProgress
from elastream.connectors.spark_source import AnyFrame, State
from elastream.lanes import LedgerState


@dataclass(frozen=True)
class Counted(AnyFrame):
    """A stream that says how often it was begun."""

    begun: list[str]

    def begin(self, spark: SparkSession, source: str, known: State) -> State:
        self.begun.append(source)
        return {"end": len(self.begun)}


def test_a_query_that_is_started_again_in_a_run_does_not_ask_the_broker_again(spark: SparkSession) -> None:
    source = Counted(lambda spark: spark.readStream.format("rate").load(), [], schema=pa.schema({"value": pa.int64()}))
    progress = SourceProgress(Topology("x").source("in", source).output("out").topology.build())
    for _ in range(2):
        assert progress.frames(spark, LedgerState())["in"].isStreaming
    assert source.begun == ["in"] and progress.states == {"in": {"end": 1}}
