"""Replays: tuples that are due at given times, made from their numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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
