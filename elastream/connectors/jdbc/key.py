"""The unique key of a table that a sink appends to: without it, rows of a task that Spark repeats are doubled."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from elastream.engine.spark.java_errors import java_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("elastream.edges")


class KeyedTable:
    """A table and the columns that name a row in it. Asks the database through the driver that Spark uses."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str], columns: tuple[str, ...]) -> None:
        self._options, self._columns = dict(options), columns
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._dialect: Any = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(options["url"])

    @property
    def statement(self) -> str:
        """What makes the key."""
        table = self._options["dbtable"]
        names = ", ".join(self._dialect.quoteIdentifier(name) for name in self._columns)
        return f"CREATE UNIQUE INDEX elastream_{zlib.crc32(table.encode()):08x} ON {table} ({names})"

    def exists(self) -> bool:
        package = self._jvm.org.apache.spark.sql.execution.datasources.jdbc
        with self._connection() as connection:
            return bool(package.JdbcUtils.tableExists(connection, self._spark_options()))

    def has_key(self) -> bool:
        """True when a unique key has no columns but these."""
        with self._connection() as connection:
            rows = connection.createStatement().executeQuery(self._dialect.getSchemaQuery(self._options["dbtable"]))
            about = rows.getMetaData()
            schema, table = about.getSchemaName(1) or None, about.getTableName(1)
            found = connection.getMetaData().getIndexInfo(connection.getCatalog(), schema, table, True, True)
            keys: dict[str, set[str]] = {}
            while found.next():
                if found.getString("COLUMN_NAME"):
                    keys.setdefault(found.getString("INDEX_NAME"), set()).add(found.getString("COLUMN_NAME").lower())
        return any(names <= set(self._columns) for names in keys.values())

    def make_key(self) -> None:
        with self._connection() as connection:
            connection.createStatement().executeUpdate(self.statement)

    def _spark_options(self) -> Any:
        package = self._jvm.org.apache.spark.sql.execution.datasources.jdbc
        return package.JdbcOptionsInWrite(self._jvm.PythonUtils.toScalaMap(self._options))

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        connection = self._dialect.createConnectionFactory(self._spark_options()).apply(-1)
        try:
            yield connection
        finally:
            connection.close()


def see_to_key(table: KeyedTable, sink: str, *, made: bool) -> None:
    """Give a table that was just `made` its key; of others, say when it is missing. The stream flows in any case."""
    try:
        if table.has_key():
            return
        if made:
            table.make_key()
            return
        reason = "it has none"
    except Py4JError as error:
        # An error of the database is said with the next write; here it may repeat an address, so only its kind is shown.
        reason = f"none could be made or found ({java_reason(error).partition(':')[0].rpartition('.')[2]})"
    log.warning(
        "sink %r: the table needs a unique key on the columns that name a row, and %s: when a machine is lost, rows may be "
        "doubled; run %s",
        sink,
        reason,
        table.statement,
    )
