"""A table of a database as a sink: Spark's JDBC writer appends the rows of a tick, each with a name of its own.

The columns `delivery` and `sequence` name a row, the same when a tick is repeated. After a start, the first tick looks which
of its rows an earlier try has written, and appends the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from elastream.connectors.jdbc.key import KeyedTable, see_to_key
from elastream.connectors.spark_sink import SEQUENCE, TASK, SinkBatch, SparkSink, WriteFrame
from elastream.engine.spark.jars import POSTGRESQL
from elastream.engine.spark.redaction import redacted
from elastream.errors import TopologyError
from elastream.topology import DUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = ("delivery", "sequence")


@dataclass(frozen=True)
class JdbcSink(SparkSink):
    """One table, made by Spark when it is not there, and then with a unique key."""

    table: str
    url: str = field(repr=False)
    options: Mapping[str, str] = field(repr=False)
    """Both may hold a password."""

    def check(self, sink: str, schema: pa.Schema) -> None:
        for name in set(NAME) & set(schema.names):
            raise TopologyError(f"sink {sink!r}: {name!r} is a column that the table gets from us; rename it")
        for column in schema:
            if pa.types.is_nested(column.type):
                raise TopologyError(
                    f"sink {sink!r}: a table cannot hold column {column.name!r} of type {column.type}; drop or convert it"
                )

    def writer_for(self, spark: SparkSession, sink: str, schema: pa.Schema) -> WriteFrame:
        from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

        options = {"url": self.url, "dbtable": self.table, **self.options}

        def append(rows: DataFrame) -> None:
            rows.write.format("jdbc").options(**options).mode("append").save()

        def write(frame: DataFrame, write: SinkBatch) -> None:
            rows = frame.withColumnsRenamed(dict(zip((TASK, SEQUENCE), NAME, strict=True))).drop(DUE)
            if write.may_be_repeated:
                keyed = KeyedTable(spark, options, NAME)
                made = not keyed.exists()
                # Makes the table, if need be.
                append(rows.limit(0))
                see_to_key(keyed, sink, made=made)
                table = spark.read.format("jdbc").options(**options).load().select(*NAME)
                written = table.where(table.delivery.startswith(write.task))
                rows = rows.join(F.broadcast(written), on=list(NAME), how="left_anti")
            append(rows)

        return write

    def redact(self, text: str) -> str:
        return redacted(text, {**self.options, "url with a password": self.url})


def jdbc(url: str, table: str, *, every_s: float = 0.0, options: Mapping[str, str] | None = None) -> JdbcSink:
    """Append to a table: `url` is a `jdbc:...` address, `options` are those of Spark's JDBC writer, such as user and password.

    The table gets two columns more, `delivery` text and `sequence` bigint. A task's rows are one transaction. When a machine is
    lost between its commit and its report, Spark runs the task again: without a unique key on both columns its rows are
    doubled; with one it fails on its own rows and the run stops, and when it is started again with the same base it goes on.
    A table that is made here gets that key; of one that was there, a warning says when it is missing.
    """
    if not url.startswith("jdbc:"):
        raise TopologyError(
            f"jdbc: expected an address such as jdbc:postgresql://host/database, got {url.split(':')[0]!r}"
        )
    postgres = url.startswith("jdbc:postgresql:")
    # One statement for many rows: PostgreSQL is several times quicker with these.
    usual = {"driver": POSTGRESQL.class_name, "reWriteBatchedInserts": "true"} if postgres else {}
    return JdbcSink(table, url, usual | dict(options or {}), jars=POSTGRESQL if postgres else None, every_s=every_s)
