"""Results in an SQLite file: deliveries enter, each in one transaction. Many processes of one machine may write."""

import sqlite3

import pyarrow as pa

from elastream.errors import OperatorFailed, SettingError
from elastream_lab.apps.results.address import Address
from elastream_lab.apps.results.table import DELIVERIES, Rows, Table, other_columns

PATIENCE_S = 120.0
"""How long a writer waits for its turn."""

_TYPES = {pa.int64(): "INTEGER", pa.int32(): "INTEGER", pa.bool_(): "INTEGER", pa.float64(): "REAL"}


class SqliteResults:
    def __init__(self, address: Address) -> None:
        self._shown = address.shown
        try:
            # A replica's connection is used by one thread at a time, but not always by the same.
            self._connection = sqlite3.connect(
                address.target, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False
            )
            # A killed process loses nothing so; a power cut may, as it may in the lanes.
            self._connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error as error:
            raise SettingError(self._unusable(error)) from None

    def create(self, table: Table) -> None:
        columns = ", ".join(f'"{field.name}" {_TYPES.get(field.type, "TEXT")}' for field in table.schema)
        if table.key:
            columns += ", PRIMARY KEY (" + ", ".join(f'"{name}"' for name in table.key) + ")"
        try:
            # Readers do not hold up the writer, nor it them.
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS {DELIVERIES} (id TEXT PRIMARY KEY) WITHOUT ROWID")
            self._connection.execute(f'CREATE TABLE IF NOT EXISTS "{table.name}" ({columns})')
            self._connection.execute("COMMIT")
            found = [row[1] for row in self._connection.execute(f'PRAGMA table_info("{table.name}")')]
        except sqlite3.Error as error:
            raise SettingError(self._unusable(error)) from None
        if found != table.columns:
            raise SettingError(other_columns(self._shown, table, found))

    def store(self, table: Table, delivery: str, rows: Rows) -> bool:
        places = ", ".join("?" * len(table.columns))
        try:
            # The write lock from the start: two readers that both want to write later would wait for each other.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                said = self._connection.execute(f"INSERT OR IGNORE INTO {DELIVERIES} VALUES (?)", (delivery,))
                if said.rowcount:
                    insert = f'INSERT INTO "{table.name}" VALUES ({places}){table.keep_greatest()}'
                    self._connection.executemany(insert, rows)
                    for first in {row[0] for row in rows} if table.best else ():
                        self._connection.execute(table.drop_the_rest("?"), (first, first))
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise OperatorFailed(f"database {self._shown}: delivery {delivery} was not stored: {error}") from None
        return said.rowcount == 1

    def read(self, table: Table) -> Rows:
        return self._connection.execute(f'SELECT * FROM "{table.name}"').fetchall()

    def close(self) -> None:
        self._connection.close()

    def _unusable(self, error: sqlite3.Error) -> str:
        return f"database {self._shown}: {error}; name a file in a directory that can be written"
