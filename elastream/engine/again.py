"""What operators with state took in a tick, kept with the plan of the next one.

Spark keeps their state in its checkpoint, and writes down that a batch is over only after the ledger has it. When the driver
dies between the two, Spark repeats the batch: it must see the same tuples, or its state would lack them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from elastream.lanes import Slice


@dataclass(frozen=True)
class Again:
    """Enough to read those tuples once more."""

    entry: int
    """The entry whose plan took them: Spark's offset for it."""
    planned_s: float
    lanes: tuple[tuple[str, int, tuple[Slice, ...]], ...]
    """(operator, lane, slices)."""
    t_out_s: float | None = None
    """As in the plan that took them."""

    @property
    def segments(self) -> set[str]:
        return {piece.segment for _, _, slices in self.lanes for piece in slices}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Again:
        lanes = tuple((op, lane, tuple(Slice(*piece) for piece in slices)) for op, lane, slices in document["lanes"])
        return cls(document["entry"], document["planned_s"], lanes, document["t_out_s"])
