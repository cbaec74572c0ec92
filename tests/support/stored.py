"""Read a database of results as its sinks left it."""

from dataclasses import replace

import pyarrow as pa

from elastream.topology import Graph
from elastream_lab.apps.common.service import Served
from elastream_lab.apps.results.database import Results, stored_rows
from elastream_lab.apps.results.table import DELIVERIES, Table


def results_of(graph: Graph, sink: str = "store") -> Results:
    """The sink of an application, without its service time."""
    served = graph[sink].function
    assert isinstance(served, Served) and isinstance(served.function, Results)
    return served.function


def stored_deliveries(results: Results) -> list[str]:
    """The ids of deliveries that are noted as stored."""
    table = Table(DELIVERIES, pa.schema([("id", pa.string())]))
    return [str(row[0]) for row in stored_rows(replace(results, table=table))]
