"""A Kafka topic as a sink: Spark's connector writes the rows of a tick, and every record says which row it is.

The header `elastream` holds `run/tick/sink-replica/sequence/time`, the time in microseconds. A tick that is repeated after a
crash writes the same records, with the same header, to the same partitions: see `elastream.kafka` for how to read each once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from elastream.connectors.kafka.admin import check_servers, kafka_admin
from elastream.connectors.kafka.source import HEADERS, Values
from elastream.connectors.spark_sink import SEQUENCE, TASK, SinkBatch, SparkSink, WriteFrame
from elastream.engine.spark.jars import KAFKA
from elastream.engine.spark.redaction import redacted
from elastream.errors import TopologyError
from elastream.kafka import HEADER
from elastream.topology import DUE, parse_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORD = ("key", "headers", "timestamp")
"""Columns of these names are the record's own and not in its JSON."""

_HEADERS = parse_schema(f"headers {HEADERS}").field("headers").type


@dataclass(frozen=True)
class KafkaSink(SparkSink):
    """One topic."""

    servers: str
    topic: str
    value: Values
    key: str | None
    options: Mapping[str, str] = field(repr=False)
    """They may hold passwords."""

    def check(self, sink: str, schema: pa.Schema) -> None:
        where, names = f"sink {sink!r}", schema.names
        if self.value != "json" and "value" not in names:
            raise TopologyError(
                f"{where}: value={self.value!r} wants a column 'value', the columns are {', '.join(names)}"
            )
        if self.value == "json" and not set(names) - set(RECORD):
            raise TopologyError(f"{where}: nothing is left for the JSON besides {', '.join(names)}; add a column")
        if self.key is not None and self.key not in names:
            raise TopologyError(f"{where}: key={self.key!r}, but the columns are {', '.join(names)}; name one of these")
        if "headers" in names and schema.field("headers").type != _HEADERS:
            raise TopologyError(
                f"{where}: expected headers {HEADERS}, got {schema.field('headers').type}; rename the column if it is no "
                "record's headers"
            )

    def writer_for(self, spark: SparkSession, sink: str, schema: pa.Schema) -> WriteFrame:
        with kafka_admin(spark, self.servers, self.options) as admin:
            partitions = admin.partitions(self.topic, f"sink {sink!r}")
        columns = self._columns(schema, partitions)
        options = {"kafka.bootstrap.servers": self.servers, "topic": self.topic, **self.options}

        def write(frame: DataFrame, write: SinkBatch) -> None:
            frame.selectExpr(*columns).write.format("kafka").options(**options).save()

        return write

    def redact(self, text: str) -> str:
        return redacted(text, self.options)

    def _columns(self, schema: pa.Schema, partitions: int) -> list[str]:
        """The record in Spark SQL. Nothing in it changes from tick to tick, so that it is compiled once."""
        key = self.key or ("key" if "key" in schema.names else None)
        keyed: str | None = None
        if key is not None:
            keyed = f"`{key}`" if pa.types.is_binary(schema.field(key).type) else f"cast(`{key}` as string)"
        fields = ", ".join(f"`{name}`" for name in schema.names if name not in RECORD)
        value = f"to_json(struct({fields}))" if self.value == "json" else f"cast(value as {self.value})"
        time = f"unix_micros({f'coalesce(timestamp, {DUE})' if 'timestamp' in schema.names else DUE})"
        name = f"cast(concat({TASK}, '/', {SEQUENCE}, '/', {time}) as binary)"
        header = f"array(named_struct('key', '{HEADER}', 'value', {name}))"
        if "headers" in schema.names:
            # A record that came from another sink of ours has a name from there.
            others = f"filter(coalesce(headers, array()), header -> header.key != '{HEADER}')"
            header = f"concat({others}, {header})"
        # Kafka would give a record without a key to any partition, and to another one when it is repeated.
        spread = f"cast(pmod(hash({TASK}, {SEQUENCE}), {partitions}) as int)"
        partition = spread if keyed is None else f"if({keyed} is null, {spread}, null)"
        return [
            *([f"{keyed} as key"] if keyed is not None else []),
            f"{value} as value",
            f"{header} as headers",
            f"{partition} as partition",
        ]


def kafka(
    servers: str,
    topic: str,
    *,
    value: Values = "json",
    key: str | None = None,
    options: Mapping[str, str] | None = None,
) -> KafkaSink:
    """Write to a topic: the columns as JSON, or the column `value` as "string" or "binary".

    Columns `key` and `headers` become the record's own; `key` names another column to be the key as well. The time of the
    tuple, from `timestamp` or else when it was due, goes into the header, for Spark's connector cannot set the record's own.
    `options` go to Spark's connector; its security settings, for example.
    """
    check_servers(servers, topic)
    if value not in ("json", "string", "binary"):
        raise TopologyError(f"kafka: value must be 'json', 'string' or 'binary', got {value!r}")
    return KafkaSink(servers, topic, value, key, dict(options or {}), jars=KAFKA)
