"""The outbox of a work: rows are shared out by the grouping of an edge, and written together at the end."""

from collections import Counter

import pyarrow as pa

from elastream.engine.messages import Loads, Routing
from elastream.engine.worker.context import WorkerContext
from elastream.errors import OperatorFailed
from elastream.lanes.runs import Runs, packed
from elastream.lanes.segment_files import Written
from elastream.lanes.segments import PARTS, STATE, LaneId, LaneOfOrigin, WrittenFor
from elastream.routing import Part, Sender, Snapshot, split
from elastream.topology import Edge
from elastream.topology.groupings import fields


class Outbox:
    """Collects, over one work, what goes to which lane."""

    def __init__(self, routing: Routing, turn: int, queued: dict[str, list[int]], loads: list[Loads]) -> None:
        self._routing = routing
        self._turn = turn
        self._queued = queued
        self._loads = {(load.grouping, load.target): load for load in loads}
        self._out: dict[WrittenFor, list[pa.RecordBatch]] = {}
        self._runs: dict[WrittenFor, Runs] = {}
        self._given: Counter[LaneId] = Counter()
        self._turns: dict[str, int] = {}

    def put(self, lane: WrittenFor, batch: pa.RecordBatch) -> None:
        self._out.setdefault(lane, []).append(batch)

    def put_state(self, operator: str, batch: pa.RecordBatch, runs: Runs) -> None:
        """What changed in the states of an operator."""
        lane = LaneId(operator + STATE, 0)
        self.put(lane, batch)
        self._runs[lane] = runs

    def put_parts(self, operator: str, batch: pa.RecordBatch, key: tuple[str, ...]) -> None:
        """Parts of the states of split keys go where the keys live."""
        owners = self._routing.owners[operator]
        for number, part in split(fields(*key), batch, Snapshot((0,), owners=owners), Sender()).items():
            lane = LaneId(operator + PARTS, number)
            self.put(lane, part.rows)
            self._runs[lane] = self._runs.get(lane, b"") + packed(part.runs)

    def share_out(self, edge: Edge, batch: pa.RecordBatch, sender: int) -> dict[int, Part]:
        """The rows by the lanes behind an edge; nothing is put there yet."""
        target = edge.target
        # Each batch goes on where the one before ended: what is over must not always go to the same lanes.
        turn = self._turns.get(target, self._turn + sender)
        self._turns[target] = turn + batch.num_rows
        try:
            return split(edge.grouping, batch, self._snapshot(edge), Sender(sender, turn))
        except OperatorFailed as error:
            raise OperatorFailed(f"edge {edge.source!r} -> {target!r}: {error}") from error

    def put_shares(self, edge: Edge, parts: dict[int, Part], origin: str = "") -> None:
        """Put rows that were shared out into their lanes. Rows of one `origin` are written together."""
        target = edge.target
        counts = (edge.grouping.name, target) in self._loads
        for number, part in parts.items():
            lane = LaneId(target, number)
            pile = LaneOfOrigin(target, number, origin) if origin else lane
            self.put(pile, part.rows)
            if part.runs:
                self._runs[pile] = self._runs.get(pile, b"") + packed(part.runs)
            if counts:
                self._given[lane] += part.rows.num_rows

    def write(self, context: WorkerContext) -> Written | None:
        """Write everything; what lies where now."""
        if not self._out:
            return None
        try:
            return context.writer.write(self._out, context.lane_schemas, context.kept, self._runs)
        except OSError as error:
            raise context.unwritable(error) from error

    def _snapshot(self, edge: Edge) -> Snapshot:
        """The lanes behind an edge, with what this work has given them already."""
        active = tuple(range(self._routing.sizes[edge.target]))
        queued = tuple(self._queued.get(edge.target, ()))
        known = self._loads.get((edge.grouping.name, edge.target))
        if known is None:
            splits = self._routing.splits.get(edge.target, {})
            return Snapshot(active, queued, owners=self._routing.owners.get(edge.target), splits=splits)
        given = (self._given[LaneId(edge.target, lane)] for lane in active)
        load = tuple(have + rows * known.cost for have, rows in zip(known.load, given, strict=True))
        return Snapshot(active, queued, load, known.cost)
