"""Connectors of other packages: subclasses of the public bases read and write each row once, also after a restart."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from flows import finish
from pyspark.sql import DataFrame, SparkSession

from elastream import Topology, sinks, sources, start
from elastream.errors import TopologyError
from elastream.topology import SinkSpec, SourceSpec


@dataclass(frozen=True)
class Batches(sources.SparkSource):
    """Numbers from Spark's own test source, twenty in every micro-batch, up to an end."""

    end: int

    def begin(self, spark: SparkSession, source: str, known: dict[str, Any]) -> dict[str, Any]:
        return known or {"end": self.end}

    def frame(self, spark: SparkSession, state: dict[str, Any]) -> DataFrame:
        options = {"rowsPerBatch": "20", "numPartitions": "1"}
        return spark.readStream.format("rate-micro-batch").options(**options).load().where(f"value < {state['end']}")

    def is_over(self, state: dict[str, Any], progress: dict[str, Any]) -> bool:
        return bool(progress["endOffset"]["offset"] >= state["end"])


@dataclass(frozen=True)
class JsonFolder(sinks.SparkSink):
    """A folder per batch; one that is repeated replaces itself."""

    folder: str

    def check(self, sink: str, schema: pa.Schema) -> None:
        if "secret" in schema.names:
            raise TopologyError(f"sink {sink!r}: keeps no secrets")

    def writer_for(self, spark: SparkSession, sink: str, schema: pa.Schema) -> Any:
        def write(frame: DataFrame, batch: sinks.SinkBatch) -> None:
            assert batch.sink == sink == "store" and {"_due", "_task", "_sequence"} < set(frame.columns)
            frame.drop("_due").write.mode("overwrite").json(f"{self.folder}/{batch.id}")

        return write


def application(folder: Path) -> Topology:
    app = Topology("own")
    numbers = app.source("numbers", Batches(200, schema="value long, timestamp timestamp", due="timestamp"))
    doubled = numbers.map("double", lambda row: {"value": 2 * row["value"]}, schema="value long", replicas=2)
    doubled.sink("store", JsonFolder(str(folder), every_s=0.1), replicas=2)
    return app


def test_a_source_and_a_sink_of_ones_own_keep_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    with start(application(tmp_path / "out"), str(tmp_path / "base"), spark=spark, policy=None) as handle:
        finish(handle)
        assert handle.audit().problems == () and handle.totals("store").processed == 200
    rows = spark.read.json(f"{tmp_path}/out/*").collect()
    assert Counter(row.value for row in rows) == Counter(range(0, 400, 2))
    assert len({(row._task, row._sequence) for row in rows}) == 200


def test_columns_that_a_sink_refuses_are_said_before_anything_starts(spark: SparkSession, tmp_path: Path) -> None:
    app = Topology("own")
    numbers = app.source("numbers", Batches(20, schema="value long"))
    numbers.map("hide", lambda row: {"secret": 1}, schema="secret long").sink("store", JsonFolder(str(tmp_path)))
    with pytest.raises(TopologyError, match="sink 'store': keeps no secrets"):
        start(app, str(tmp_path / "base"), spark=spark, policy=None)


def test_the_bases_are_what_a_topology_asks_for() -> None:
    source, sink = Batches(1, schema="value long"), JsonFolder("x")
    assert isinstance(source, SourceSpec) and source.schema == pa.schema({"value": pa.int64()}) and source.due is None
    assert isinstance(sink, SinkSpec) and sink.every_s == 0.0
    assert not isinstance(print, SinkSpec) and not isinstance([], SourceSpec)
