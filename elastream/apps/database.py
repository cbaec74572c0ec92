"""The sink of the applications: batches of results enter a database, each delivery once.

A tick that is repeated after a crash brings the same rows under the same delivery id. The id and the rows are stored in
one transaction, so a delivery that is known is skipped, and one that was cut short left nothing.
"""

import os
from dataclasses import dataclass

import pyarrow as pa

from elastream.apps.database_address import Address, parse_address
from elastream.apps.postgres_results import PostgresResults
from elastream.apps.redis_results import RedisResults
from elastream.apps.results_table import DELIVERIES, Database, Rows, Table
from elastream.apps.sqlite_results import SqliteResults
from elastream.engine import Delivery
from elastream.topology import Graph

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


def results_in(database: str, table: Table) -> Results:
    """The tables are made here, in the driver: a database that cannot be used is said before anything runs."""
    results = Results(parse_address(database), table)
    connection = _connect(results.address)
    try:
        connection.create(results.table)
    finally:
        connection.close()
    return results


def stored_rows(results: Results) -> Rows:
    """Everything in the table of results."""
    return _read(results.address, results.table)


def remarks(graph: Graph) -> list[str]:
    """What the applications' sinks have to say of all that is in their tables."""
    functions = [getattr(operator.function, "function", None) for operator in graph.served]
    found = [function for function in functions if isinstance(function, Results) and function.table.remark]
    return [results.table.remark(stored_rows(results)) for results in found if results.table.remark]


def stored_deliveries(results: Results) -> list[str]:
    return [str(row[0]) for row in _read(results.address, Table(DELIVERIES, pa.schema([("id", pa.string())])))]


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
