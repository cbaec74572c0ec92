"""What every worker knows of a run: the graph with its functions, the settings, where the lanes are.

It travels inside the data source as bytes and is opened once per worker process, not once per task.
"""

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyspark import cloudpickle

from elastream.engine.settings import Settings
from elastream.lanes import Store
from elastream.topology import Graph, parse_schema

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
        data: bytes = cloudpickle.dumps(self)
        return data


@lru_cache(maxsize=4)
def load_program(data: bytes) -> tuple[Program, Store]:
    """The same bytes give the same objects for as long as the worker lives."""
    program: Program = cloudpickle.loads(data)
    return program, Store(program.base)


@lru_cache(maxsize=256)
def cached_schema(text: str) -> pa.Schema:
    from elastream.lanes.segments import decode_schema

    return decode_schema(text)
