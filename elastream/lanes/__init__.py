"""Where tuples wait. Batches for lanes and ledger entries enter; slices to read and the state leave. Knows no Spark."""

from elastream.lanes.audit import Audit, audit
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import Entry, Given
from elastream.lanes.ledger import Ledger
from elastream.lanes.queues import LaneQueue
from elastream.lanes.segments import Appended, LaneId, SchemaId, Slice
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store

__all__ = [
    "Appended",
    "Audit",
    "Entry",
    "Given",
    "LaneId",
    "LaneQueue",
    "Ledger",
    "LedgerState",
    "OperatorCounts",
    "SchemaId",
    "Slice",
    "Store",
    "audit",
]
