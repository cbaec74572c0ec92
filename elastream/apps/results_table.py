"""A table of results: Arrow columns enter; SQL types, and rows that every database takes, leave."""

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

Rows = list[tuple[Any, ...]]

DELIVERIES = "deliveries"
"""The table of all that was stored before: a delivery that is in it is a repeated one."""


@dataclass(frozen=True)
class Table:
    name: str
    schema: pa.Schema

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    def rows(self, batch: pa.RecordBatch) -> Rows:
        return list(zip(*(_plain(batch.column(name)) for name in self.columns), strict=True))


class Database(Protocol):
    """An open connection, of one process."""

    def create(self, table: Table) -> None:
        """Make what is missing; refuse a table of this name with other columns."""

    def store(self, table: Table, delivery: str, rows: Rows) -> bool:
        """In one transaction the delivery and its rows; false when it was stored before."""

    def read(self, table: Table) -> Rows:
        """All rows, in no order."""

    def close(self) -> None: ...


def other_columns(where: str, table: Table, found: list[str]) -> str:
    return (
        f"database {where}: expected a table {table.name} with columns {', '.join(table.columns)}, "
        f"found {', '.join(found)}; name another database, or rename that table"
    )


def _plain(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        # Both databases read this text; Python's objects for it are many times slower.
        column = pc.binary_join_element_wise(column.cast(pa.timestamp("us")).cast(pa.string()), "+00:00", "")
    elif pa.types.is_string(column.type):
        # PostgreSQL takes every character but this one, and one row must not cost a delivery.
        column = pc.replace_substring(column, "\0", "\ufffd")
    return list(column.to_pylist())
