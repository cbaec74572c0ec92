"""What every worker knows of a run: the graph with its functions, the settings, where the lanes are.

It travels inside the data source as bytes and is opened once per worker process, not once per task.
"""

import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from elastream.engine.settings import Settings
from elastream.engine.sources import Replay
from elastream.lanes import Store
from elastream.topology import Graph, parse_schema
from elastream.workload import Arrivals

DEAD_LETTERS = "dead-letters"
"""The output that every run has: the tuples on which an operator raised."""

DEAD_LETTER_SCHEMA = parse_schema("operator string, replica int, error string, row string, failed_at timestamp")


@dataclass(frozen=True)
class Program:
    """Shipped whole; never stored."""

    graph: Graph
    settings: Settings
    base: str
    base_id: str
    """Names this base among all others, for sinks that remember deliveries."""

    def to_bytes(self) -> bytes:
        """With the driver's search path, so that workers on this machine find the modules that the functions are in."""
        operators = tuple(replace(o, source=_travelling(o.source), writer=None) for o in self.graph.operators)
        program = replace(self, graph=replace(self.graph, operators=operators))
        data: bytes = cloudpickle.dumps((sys.path, cloudpickle.dumps(program)))  # type: ignore[no-untyped-call]
        return data


def _travelling(source: Any) -> Any:
    """What a worker needs of a source: not how a DataFrame is opened, nor when all the tuples of a workload are due.

    Writers do not travel either: Spark knows them, and they may hold passwords.
    """
    return replace(source, arrivals=Arrivals((0.0,), (0.0,))) if isinstance(source, Replay) else None


@lru_cache(maxsize=16)
def load_program(data: bytes) -> tuple[Program, Store]:
    """The same bytes give the same objects for as long as the worker lives."""
    search_path, inner = cloudpickle.loads(data)
    sys.path.extend(path for path in search_path if path not in sys.path)
    program: Program = cloudpickle.loads(inner)
    return program, Store(program.base)


@lru_cache(maxsize=256)
def cached_schema(text: str) -> pa.Schema:
    from elastream.lanes.segments import decode_schema

    return decode_schema(text)
