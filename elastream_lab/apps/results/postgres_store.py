"""Results in PostgreSQL: deliveries enter, each in one transaction. A server that comes back is found again."""

import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elastream.errors import OperatorFailed, SettingError
from elastream_lab.apps.results.address import Address
from elastream_lab.apps.results.table import DELIVERIES, Rows, Table, other_columns

if TYPE_CHECKING:
    import psycopg

WAITS_S = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Before each try to reach a server that went away: what a sink cannot store is set aside for good."""

CONNECT_S = 10

_TYPES = {pa.int64(): "bigint", pa.int32(): "integer", pa.bool_(): "boolean", pa.float64(): "double precision"}


class PostgresResults:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._psycopg = _driver()
        self._connection = self._connect()

    def create(self, table: Table) -> None:
        sql = self._psycopg.sql
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(_type(field.type))) for field in table.schema
        )
        if table.key:
            key = sql.SQL(", ").join(map(sql.Identifier, table.key))
            columns = sql.SQL("{}, PRIMARY KEY ({})").format(columns, key)
        names = "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND table_schema = current_schema()"
        try:
            with self._connection.transaction():
                run = self._connection.execute
                run(sql.SQL("CREATE TABLE IF NOT EXISTS {} (id text PRIMARY KEY)").format(sql.Identifier(DELIVERIES)))
                run(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(sql.Identifier(table.name), columns))
                found = [row[0] for row in run(f"{names} ORDER BY ordinal_position", (table.name,))]
        except self._psycopg.Error as error:
            raise SettingError(f"database {self._address.shown}: {self._address.hide(error)}") from None
        if found != table.columns:
            raise SettingError(other_columns(self._address.shown, table, found))

    def store(self, table: Table, delivery: str, rows: Rows) -> bool:
        for wait_s in WAITS_S:
            time.sleep(wait_s)
            try:
                if self._connection.closed:
                    self._connection = self._connect()
                return self._store(table, delivery, rows)
            except self._psycopg.Error as error:
                said = self._address.hide(error)
                if not self._connection.closed:
                    break
            except SettingError as error:
                said = str(error)
        raise OperatorFailed(f"database {self._address.shown}: delivery {delivery} was not stored: {said}") from None

    def read(self, table: Table) -> Rows:
        sql = self._psycopg.sql
        return self._connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table.name))).fetchall()

    def close(self) -> None:
        self._connection.close()

    def _store(self, table: Table, delivery: str, rows: Rows) -> bool:
        sql = self._psycopg.sql
        with self._connection.transaction(), self._connection.cursor() as cursor:
            # When another process is storing the same delivery, this waits for it to end, one way or the other.
            deliveries = sql.Identifier(DELIVERIES)
            cursor.execute(sql.SQL("INSERT INTO {} VALUES (%s) ON CONFLICT DO NOTHING").format(deliveries), (delivery,))
            if not cursor.rowcount:
                return False
            if table.greatest:
                places = ", ".join(["%s"] * len(table.columns))
                cursor.executemany(f'INSERT INTO "{table.name}" VALUES ({places}){table.keep_greatest()}', rows)
                for first in {row[0] for row in rows} if table.best else ():
                    cursor.execute(table.drop_the_rest("%s", ' COLLATE "C"'), (first, first))
                return True
            with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table.name))) as copy:
                for row in rows:
                    copy.write_row(row)
        return True

    def _connect(self) -> "psycopg.Connection[Any]":
        try:
            connection: psycopg.Connection[Any] = self._psycopg.connect(
                self._address.target, autocommit=True, connect_timeout=CONNECT_S
            )
        except self._psycopg.Error as error:
            raise SettingError(
                f"database {self._address.shown}: {self._address.hide(error)}; check that the server runs, and the URL"
            ) from None
        return connection


def _driver() -> Any:
    try:
        import psycopg
        import psycopg.sql
    except ImportError:
        raise SettingError("database postgresql://...: needs psycopg; pip install 'elastream[postgres]'") from None
    return psycopg


def _type(kind: pa.DataType) -> str:
    return "timestamptz" if pa.types.is_timestamp(kind) else _TYPES.get(kind, "text")
