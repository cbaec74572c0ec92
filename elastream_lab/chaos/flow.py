"""The flow that chaos is made with: numbers from a replay, files and a topic, through operators and Spark's state, to a sink.

Every number must arrive once. A number may be poison: then it must be in the dead letters.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from elastream.connectors import sources
from elastream.engine.worker.delivery import Delivery
from elastream.topology import Topology, groupings, parse_schema
from elastream.workload import constant
from elastream.workload.replay import Replay
from elastream_lab.chaos.spec import RunSpec

TOPIC = "numbers"

SCHEMA = "id long, poison string"


def chaos_flow(spec: RunSpec) -> Topology:
    """As the spec wants it: with what Spark serves, with a topic, or plain."""
    flow, folder = Topology("chaos"), Path(spec.folder)
    replay = Replay(constant(spec.per_second, spec.seconds), parse_schema(SCHEMA), _harmless)
    flow.source("replay", replay, replicas=2)
    before = ["replay"]
    if spec.servers is not None:
        flow.source("topic", sources.kafka(spec.servers, TOPIC, SCHEMA, keep=(), most_per_tick=1000))
        before.append("topic")
    if spec.edges:
        flow.source("files", sources.json(str(folder / "in"), SCHEMA, files_per_tick=4))
        before.append("files")
    flow.map("work", swallow, after=before, replicas=(1, 4), start=2)
    flow.map("pass", same, after="work", grouping=groupings.fields("id"), replicas=3)
    flow.sink("end", files_by_delivery(folder / "sink"), after="pass", replicas=2)
    if spec.edges:
        flow.dataframe("tally", tally, after="pass", schema="digit long, count long", updates=True, replicas=2)
        flow.output("tallies", after="tally")
    return flow


def _harmless(numbers: Any) -> dict[str, Any]:
    return {"id": numbers, "poison": pa.nulls(len(numbers), pa.string())}


def swallow(row: dict[str, Any]) -> dict[str, Any]:
    match row["poison"]:
        case "raises":
            raise ValueError("poison")
        case "ends its process":
            os._exit(9)
        case "never returns":
            time.sleep(3600)
    return row


def same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def tally(frame: DataFrame) -> DataFrame:
    return frame.groupBy((frame.id % 10).alias("digit")).count()


def files_by_delivery(folder: Path) -> Callable[[pa.RecordBatch, Delivery], None]:
    """A sink that remembers deliveries: the same one replaces its own file."""

    def write(batch: pa.RecordBatch, delivery: Delivery) -> None:
        new = folder / f"{delivery.id}.new"
        new.write_text(" ".join(map(str, batch.column("id").to_pylist())))
        new.rename(folder / f"{delivery.id}.ids")

    return write
