"""A table of results: Arrow columns enter; SQL types, and rows that every database takes, leave."""

from collections.abc import Callable
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

    greatest: str | None = None
    """Of rows that agree in all other columns, the one that is greatest in this one is kept; None: all rows are."""

    best: int | None = None
    """Of the rows that agree in the first column, only so many are kept, the greatest; of equal ones the first in order."""

    remark: Callable[[Rows], str] | None = None
    """One line about all rows, for the end of a run."""

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    @property
    def key(self) -> list[str]:
        """The columns that tell rows apart; none where all rows are kept."""
        return [name for name in self.columns if name != self.greatest] if self.greatest else []

    def rows(self, batch: pa.RecordBatch) -> Rows:
        rows = list(zip(*(_plain(batch.column(name)) for name in self.columns), strict=True))
        if not self.greatest:
            return rows
        # Two writers that meet the same rows in different orders would wait for each other.
        place = self.columns.index(self.greatest)
        kept: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for row in sorted(rows, key=lambda row: row[place]):
            kept[row[:place] + row[place + 1 :]] = row
        return [kept[key] for key in sorted(kept)]

    def keep_greatest(self) -> str:
        """The end of an INSERT, for SQLite and PostgreSQL."""
        if not self.greatest:
            return ""
        key = ", ".join(f'"{name}"' for name in self.key)
        value = f'"{self.greatest}"'
        return (
            f" ON CONFLICT ({key}) DO UPDATE SET {value} = excluded.{value} "
            f'WHERE "{self.name}".{value} < excluded.{value}'
        )

    def drop_the_rest(self, place: str, collation: str = "") -> str:
        """A DELETE of what is not among the best, for rows whose first column is given once for each of two places."""
        first, *others = self.key
        here = f'"{self.name}" WHERE "{first}" = {place}'
        names = ", ".join(f'"{name}"' for name in others)
        order = ", ".join(f'"{name}"{collation}' for name in others)
        kept = f'SELECT {names} FROM {here} ORDER BY "{self.greatest}" DESC, {order} LIMIT {self.best}'
        return f"DELETE FROM {here} AND ({names}) NOT IN ({kept})"


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
