"""The sink of the applications: batches of results enter a database, each delivery once.

A tick that is repeated after a crash brings the same rows under the same delivery id. The id and the rows are stored in
one transaction, so a delivery that is known is skipped, and one that was cut short left nothing.
"""

import os
from dataclasses import dataclass

import pyarrow as pa

from elastream.engine import Delivery
from elastream.engine.spark.jars import cache_folder
from elastream_lab.apps.results.address import Address, parse_address
from elastream_lab.apps.results.postgres_store import PostgresResults
from elastream_lab.apps.results.redis_store import RedisResults
from elastream_lab.apps.results.sqlite_store import SqliteResults
from elastream_lab.apps.results.table import Database, Rows, Table

BASE = "base"
"""A column of this name gets the id of the base that a row comes from."""

_OPEN: dict[tuple[int, int, str], Database] = {}
"""By process and by replica: a connection that came over a fork belongs to the parent, and is not even closed here;
replicas that share a process may be served side by side."""


@dataclass(frozen=True)
class Results:
    """A sink: it opens its connection in the worker that runs it, and keeps it."""

    address: Address
    table: Table

    def __call__(self, batch: pa.RecordBatch, delivery: Delivery) -> None:
        key = (os.getpid(), delivery.replica, self.address.target)
        if key not in _OPEN:
            _OPEN[key] = _connect(self.address)
        if BASE in self.table.columns:
            batch = batch.append_column(BASE, pa.array([delivery.base_id] * batch.num_rows, pa.string()))
        _OPEN[key].store(self.table, delivery.id, self.table.rows(batch))

    def summary(self) -> str:
        """Where the rows are stored, and a remark on all that is in the table, for the end of a run."""
        lines = [f"results are in table {self.table.name} of {self.address.shown}"]
        return "\n".join(lines + ([self.table.remark(stored_rows(self))] if self.table.remark else []))


def results_in(database: str, table: Table) -> Results:
    """The tables are made here, in the driver: a database that cannot be used is said before anything runs."""
    results = Results(parse_address(database), table)
    connection = _connect(results.address)
    try:
        connection.create(results.table)
    finally:
        connection.close()
    return results


def chosen_database(database: str | None, name: str) -> str:
    """As asked for; when nobody says where results go, a file in the cache, and not where the command was called."""
    if database is not None:
        return database
    folder = cache_folder() / "results"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / f"{name}.sqlite")


def stored_rows(results: Results) -> Rows:
    """Everything in the table of results."""
    return _read(results.address, results.table)


def close_connections() -> None:
    """Those of this process. Workers need not: the connections end with them."""
    for key in [key for key in _OPEN if key[0] == os.getpid()]:
        _OPEN.pop(key).close()


def _read(address: Address, table: Table) -> Rows:
    connection = _connect(address)
    try:
        return connection.read(table)
    finally:
        connection.close()


def _connect(address: Address) -> Database:
    if address.is_redis:
        return RedisResults(address)
    return PostgresResults(address) if address.is_postgres else SqliteResults(address)
