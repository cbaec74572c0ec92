"""Replays: tuples that are due at given times, made from their numbers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastream.errors import SettingError
from elastream.topology import Graph
from elastream.workload.arrivals import Arrivals

Numbers = npt.NDArray[np.int64]
Make = Callable[[Numbers], "dict[str, Any] | pa.RecordBatch"]


@dataclass(frozen=True)
class Replay:
    """Tuples that are due at given times, made from their numbers: the same number gives the same tuple."""

    arrivals: Arrivals
    schema: pa.Schema
    make: Make

    def rows(self, first: int, stop: int) -> pa.RecordBatch:
        made = self.make(np.arange(first, stop, dtype=np.int64))
        if isinstance(made, pa.RecordBatch):
            return made.cast(self.schema)
        return pa.RecordBatch.from_pydict({name: made[name] for name in self.schema.names}, schema=self.schema)


def with_arrivals(graph: Graph, arrivals: Arrivals) -> Graph:
    """The same graph, whose replay sources follow these arrivals instead of their own."""
    if not any(isinstance(source.source, Replay) for source in graph.sources):
        raise SettingError(f"app {graph.name!r}: has no replay source, so a trace has nothing to drive; leave it out")
    operators = tuple(
        replace(o, source=replace(o.source, arrivals=arrivals)) if isinstance(o.source, Replay) else o
        for o in graph.operators
    )
    return replace(graph, operators=operators)
