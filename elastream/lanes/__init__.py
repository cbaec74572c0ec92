"""Where tuples wait. Batches for lanes and ledger entries enter; slices to read and the book leave. Knows no Spark."""

from elastream.lanes.audit import Audit, audit
from elastream.lanes.book import Book, Entry
from elastream.lanes.cleanup import Cleanup
from elastream.lanes.hold import Hold
from elastream.lanes.ledger import Ledger
from elastream.lanes.queues import LaneQueue
from elastream.lanes.segments import Appended, LaneId, SchemaId, Slice
from elastream.lanes.store import Store

__all__ = [
    "Appended",
    "Audit",
    "Book",
    "Cleanup",
    "Entry",
    "Hold",
    "LaneId",
    "LaneQueue",
    "Ledger",
    "SchemaId",
    "Slice",
    "Store",
    "audit",
]
