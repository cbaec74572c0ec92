"""The rows that a sink is given."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Delivery:
    """Which rows a sink gets. After a crash the same rows come under the same id."""

    id: str
    operator: str
    replica: int
    first: int
    """How many tuples this replica had taken before them, since the base began."""

    base_id: str = ""
    """Of the base that they waited in: its first deliveries begin a result anew."""


Deliver = Callable[[pa.RecordBatch, Delivery], object]
"""Takes the rows of a sink."""
