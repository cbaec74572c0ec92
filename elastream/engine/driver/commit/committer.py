"""The first stage of a tick: events become the part of an entry that says what was done, and it is applied."""

from dataclasses import dataclass

from elastream.engine.driver.commit.entries import EntryBuilder
from elastream.engine.driver.commit.first_failures import FirstFailures
from elastream.engine.driver.commit.host_events import HostEvents, WorkDone
from elastream.engine.driver.commit.merge import ReceiptMerger, TickResult, first_problem
from elastream.engine.driver.dispatch.works import Moment
from elastream.engine.driver.lifecycle import Resize
from elastream.engine.driver.ports import EdgeBatch, Edges
from elastream.engine.hosts.link import Event
from elastream.engine.messages import Receipt
from elastream.lanes.entries import Entry
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState


@dataclass(frozen=True)
class Committed:
    """The result of the first stage of a tick: applied, and in force once the entry is written."""

    entry: Entry | None
    """The part that says what was done; None if nothing was."""
    result: TickResult
    receipts: list[Receipt]
    done: list[WorkDone]
    resized: dict[str, Resize]
    batches: list[EdgeBatch]
    filled: list[LaneId]
    """Lanes that got tuples."""
    unused: list[str]
    """Segments that nothing needs any more."""
    ended: list[str]
    """Segment files that hosts have ended."""


class Committer:
    """In the driver's thread only."""

    def __init__(
        self,
        state: LedgerState,
        events: HostEvents,
        merger: ReceiptMerger,
        failures: FirstFailures,
        entries: EntryBuilder,
        edges: Edges | None,
    ) -> None:
        self._state = state
        self._events = events
        self._merger = merger
        self._failures = failures
        self._entries = entries
        self._edges = edges

    def commit(self, events: list[Event], requested: dict[str, Resize], moment: Moment) -> Committed:
        """Take the events of hosts, the batches of Spark and the sizes that were requested."""
        reports = self._events.read(events, moment)
        batches = self._edges.take() if self._edges else []
        resized = {name: size for name, size in requested.items() if size.replicas != self._state.sizes.get(name)}
        receipts = [receipt for _, receipt in reports.done] + [one for batch in batches for one in batch.receipts]
        problem = first_problem(receipts)
        if problem is not None:
            raise problem
        self._failures.hear(receipts)
        result = self._merger.merge(self._state, receipts)
        spark = [self._edges.part_of(batch) for batch in batches] if self._edges else []
        sizes = {name: size.replicas for name, size in resized.items()}
        entry = self._entries.done(result, reports.done, spark, sizes, moment)
        applied = self._state.apply(entry) if entry is not None else None
        return Committed(
            entry,
            result,
            receipts,
            reports.done,
            resized,
            batches,
            applied.filled if applied else [],
            [*(applied.freed if applied else ()), *result.unused, *reports.unused],
            reports.ended,
        )
