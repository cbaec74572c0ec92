"""The grouping `custom`: a function of the user chooses the replica."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from elastream.errors import TopologyError
from elastream.routing.base import Grouping, Sender, Snapshot


@dataclass(frozen=True)
class Custom(Grouping):
    """`function(batch, replicas) -> array` chooses a replica from 0 to replicas - 1 for each row."""

    function: Callable[..., Any]
    name = "custom"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TopologyError(
                f"grouping custom: expected function(batch, replicas) -> array, got {type(self.function).__name__}; "
                "pass a def or a lambda"
            )

    def choose(self, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> Any:
        return self.function(batch, len(to.active))

    def __str__(self) -> str:
        return f"{self.name}({getattr(self.function, '__name__', type(self.function).__name__)})"
