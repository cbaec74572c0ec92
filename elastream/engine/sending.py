"""What a task sends to lanes: batches enter, are shared out by the grouping of an edge, and are written together at the end."""

from collections import Counter

import pyarrow as pa

from elastream.engine.work import OperatorReceipt, TaskWork
from elastream.errors import BaseUnusable
from elastream.lanes import Appended, LaneId, Store
from elastream.lanes.segments import encode_schema, write_segments
from elastream.routing import Sender, Snapshot, split
from elastream.topology import Edge


class Sending:
    """Collects, over all the work of a task, what goes to which lane."""

    def __init__(self, work: TaskWork) -> None:
        self._work = work
        self._out: dict[LaneId, list[pa.RecordBatch]] = {}
        self._given: Counter[LaneId] = Counter()
        self._turns: dict[tuple[str, str], int] = {}

    def put(self, lane: LaneId, batch: pa.RecordBatch) -> None:
        self._out.setdefault(lane, []).append(batch)

    def route(self, receipt: OperatorReceipt, edge: Edge, batch: pa.RecordBatch) -> None:
        """Share the rows out among the lanes behind an edge; the receipt says how many went to each."""
        # Each batch goes on where the one before ended: what is over must not always go to the same lanes.
        turn = self._turns.setdefault((receipt.operator, edge.target), self._work.tick + receipt.lane)
        self._turns[receipt.operator, edge.target] = turn + batch.num_rows
        sender = Sender(receipt.lane, turn)
        for lane, rows in split(edge.grouping, batch, self._snapshot(edge), sender).items():
            self.put(LaneId(edge.target, lane), rows)
            delivered = receipt.delivered.setdefault(edge.target, {})
            delivered[lane] = delivered.get(lane, 0) + rows.num_rows
            self._given[LaneId(edge.target, lane)] += rows.num_rows

    def absorb(self, other: "Sending") -> None:
        """Take over what is to be written."""
        for lane, batches in other._out.items():
            self._out.setdefault(lane, []).extend(batches)

    def write(self, store: Store) -> tuple[list[Appended], dict[str, str]]:
        """Write everything; what lies where now, and the schemas of it."""
        try:
            appended, schemas = write_segments(store, self._work.tick, self._out)
        except OSError as error:
            raise BaseUnusable(
                f"base {store}: a segment of tick {self._work.tick} could not be written: {error}; "
                "make room or mend the permissions, then start again with the same base"
            ) from error
        return appended, {key: encode_schema(schema) for key, schema in schemas.items()}

    def _snapshot(self, edge: Edge) -> Snapshot:
        """What is known of the operator behind an edge, with what this task has given it already."""
        target, known = edge.target, self._work.loads.get(edge.grouping.kind, {})
        active = tuple(self._work.active[target])
        queued = tuple(self._work.queued.get(target, ()))
        if target not in known:
            return Snapshot(active, queued)
        load, cost = known[target]
        given = (self._given[LaneId(target, lane)] for lane in active)
        return Snapshot(active, queued, tuple(u + n * cost for u, n in zip(load, given, strict=True)), cost)
