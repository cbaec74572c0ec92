"""The state of a base: everything its ledger says, in memory. Entries are applied one after another."""

from collections import Counter, deque
from typing import Any, NamedTuple

import msgspec

from elastream.lanes.counts import OperatorCounts
from elastream.lanes.queues import LaneQueue
from elastream.lanes.segments import Appended, LaneId, SchemaId, Slice

Memory = dict[str, Any]
"""Per part of a source, which of its last records were there: see `elastream.kafka`."""


class Given(NamedTuple):
    """Tuples at the head of a lane that somebody outside is given: a sink, or a dataframe operator.

    Whoever gets them may see them again after a crash, and must then see the same rows under the same name.
    """

    operator: str
    lane: int
    rows: int
    entry: int
    """The entry that says so."""
    planned_s: float
    """When it was planned: older tuples than `t_out_s` before it are left out, also when it is repeated."""
    t_out_s: float | None = None


class Reread(NamedTuple):
    """The tuples that a dataframe operator with state took last: Spark may repeat the batch they were in."""

    offer: int
    operator: str
    lane: int
    first: int
    planned_s: float
    t_out_s: float | None
    slices: list[Slice]


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One commit: what happened since the entry before it. Written whole or not at all."""

    number: int
    at_s: float
    consumed: list[tuple[str, int, int]] = []
    """(operator, lane, tuples)."""
    appended: list[Appended] = []
    counts: dict[str, OperatorCounts] = {}
    """Per operator, what is added to its totals."""
    sources: dict[str, dict[str, Any]] = {}
    """Per source that moved, how far it has been read."""
    given: list[Given] = []
    sizes: dict[str, int] = {}
    """Per operator whose replicas changed, how many there are."""
    schemas: dict[SchemaId, str] = {}
    """Schemas that slices name for the first time."""
    estimates: dict[str, tuple[float, float]] = {}
    """Per operator, now and then: seconds per tuple, and tuples out per tuple in."""
    outputs: list[str] | None = None
    """Operators whose lanes are read from outside, when that changed: what waits there has finished."""
    query: str | None = None
    """Spark's id of the edge query, when this entry commits one of its batches."""
    batch: int = -1
    offer: int = -1
    """The number of the offer to dataframe operators that this entry makes."""
    reread: list[Reread] | None = None
    """What dataframe operators with state took in the batch that this entry commits."""
    memories: dict[str, Memory] = {}
    """Per source that is read once, the parts of its memory that changed; the others stay as they were."""


class Snapshot(msgspec.Struct, frozen=True):
    """The whole state as it is written: a log begins with one."""

    entry: int
    at_s: float
    lanes: list[tuple[str, int, int, list[Slice]]]
    """(operator, lane, tuples consumed, slices that wait)."""
    schemas: dict[SchemaId, str]
    totals: dict[str, OperatorCounts]
    sources: dict[str, dict[str, Any]]
    given: list[Given]
    sizes: dict[str, int]
    estimates: dict[str, tuple[float, float]]
    outputs: list[str]
    query: str
    batch: int
    offer: int
    reread: list[Reread]
    memories: dict[str, Memory] = {}
    """Per source that is read once, its whole memory."""


class Applied(NamedTuple):
    """What an entry changed."""

    freed: list[str]
    """Segments that no slice names any more."""
    filled: list[LaneId]
    """Lanes that got tuples."""


class LedgerState:
    """The state after the last entry that was applied."""

    def __init__(self) -> None:
        self.entry = -1
        self.at_s = 0.0
        self.lanes: dict[LaneId, LaneQueue] = {}
        self.schemas: dict[SchemaId, str] = {}
        self.totals: dict[str, OperatorCounts] = {}
        self.sources: dict[str, dict[str, Any]] = {}
        self.given: dict[LaneId, Given] = {}
        self.sizes: dict[str, int] = {}
        self.estimates: dict[str, tuple[float, float]] = {}
        self.outputs: list[str] = []
        self.query = ""
        self.batch = -1
        self.offer = -1
        self.reread: list[Reread] = []
        self.memories: dict[str, Memory] = {}
        self._of: dict[str, dict[int, LaneQueue]] = {}
        self._queued: Counter[str] = Counter()
        self._uses: Counter[str] = Counter()

    def queue(self, lane: LaneId) -> LaneQueue:
        found = self.lanes.get(lane)
        if found is None:
            found = self.lanes[lane] = LaneQueue()
            self._of.setdefault(lane.operator, {})[lane.lane] = found
        return found

    def lanes_of(self, operator: str) -> dict[int, LaneQueue]:
        """The lanes that an operator has or had, by their numbers."""
        return self._of.get(operator, {})

    def queued(self, operator: str) -> int:
        return self._queued[operator]

    def names(self, segment: str) -> bool:
        """True when some slice of this segment waits."""
        return segment in self._uses

    def segments(self) -> set[str]:
        """Those of which something waits, or may be read again."""
        return set(self._uses)

    def apply(self, entry: Entry) -> Applied:
        """Follow one entry."""
        if entry.number != self.entry + 1:
            raise ValueError(f"entry {entry.number} after {self.entry}")
        self.schemas.update(entry.schemas)
        filled: list[LaneId] = []
        uses, queued = self._uses, self._queued
        for operator, lane_number, piece in entry.appended:
            lane = LaneId(operator, lane_number)
            self.queue(lane).append(piece)
            queued[operator] += piece.rows
            uses[piece.segment] += 1
            filled.append(lane)
        if entry.query is not None:
            self.query, self.batch = entry.query, entry.batch
        freed = self._consume(entry)
        if entry.reread is not None:
            # The new ones first: a segment that is in both lists stays.
            before, self.reread = self.reread, entry.reread
            self._uses.update(piece.segment for again in entry.reread for piece in again.slices)
            freed = [segment for segment in freed if segment not in self._uses]
            for again in before:
                freed += self._release(again.slices)
        for operator, counts in entry.counts.items():
            totals = self.totals.get(operator)
            if totals is None:
                totals = self.totals[operator] = OperatorCounts()
            totals.add(counts)
        self.sources.update(entry.sources)
        for source, memory in entry.memories.items():
            self.memories.setdefault(source, {}).update(memory)
        self._move_memories(entry.sources)
        self.sizes.update(entry.sizes)
        self.estimates.update(entry.estimates)
        if entry.outputs is not None:
            self.outputs = entry.outputs
        for given in entry.given:
            self.given[LaneId(given.operator, given.lane)] = given
        if entry.offer >= 0:
            self.offer = entry.offer
        self.entry, self.at_s = entry.number, entry.at_s
        return Applied(freed, filled)

    def _move_memories(self, sources: dict[str, dict[str, Any]]) -> None:
        """Ledgers used to keep a memory whole, among what they say of its source."""
        for source, known in sources.items():
            if isinstance(known.get("once"), dict):
                self.sources[source] = {key: value for key, value in known.items() if key != "once"}
                self.memories[source] = dict(known["once"])

    def _consume(self, entry: Entry) -> list[str]:
        freed = []
        for operator, lane_number, rows in entry.consumed:
            lane = LaneId(operator, lane_number)
            self._queued[operator] -= rows
            self.given.pop(lane, None)
            freed += self._release(self.queue(lane).consume(rows))
        return freed

    def _release(self, slices: list[Slice]) -> list[str]:
        freed = []
        for piece in slices:
            self._uses[piece.segment] -= 1
            if not self._uses[piece.segment]:
                del self._uses[piece.segment]
                freed.append(piece.segment)
        return freed

    def snapshot(self) -> Snapshot:
        return Snapshot(
            entry=self.entry,
            at_s=self.at_s,
            lanes=[(*lane, queue.consumed, list(queue.slices)) for lane, queue in self.lanes.items()],
            schemas=self.schemas,
            totals=self.totals,
            sources=self.sources,
            given=list(self.given.values()),
            sizes=self.sizes,
            estimates=self.estimates,
            outputs=self.outputs,
            query=self.query,
            batch=self.batch,
            offer=self.offer,
            reread=self.reread,
            memories=self.memories,
        )

    @classmethod
    def restored(cls, snapshot: Snapshot) -> "LedgerState":
        state = cls()
        for operator, number, consumed, slices in snapshot.lanes:
            lane = LaneId(operator, number)
            queue = state.lanes[lane] = LaneQueue(consumed, deque(slices))
            state._of.setdefault(operator, {})[number] = queue
            state._queued[operator] += len(queue)
            state._uses.update(piece.segment for piece in slices)
        state.entry, state.at_s, state.schemas = snapshot.entry, snapshot.at_s, dict(snapshot.schemas)
        # Counts are added to, so they are not shared.
        state.totals = {name: msgspec.structs.replace(counts) for name, counts in snapshot.totals.items()}
        state.sources = dict(snapshot.sources)
        state.given = {LaneId(given.operator, given.lane): given for given in snapshot.given}
        state.sizes, state.estimates = dict(snapshot.sizes), dict(snapshot.estimates)
        state.outputs, state.query, state.batch = snapshot.outputs, snapshot.query, snapshot.batch
        state.offer, state.reread = snapshot.offer, snapshot.reread
        state._uses.update(piece.segment for again in snapshot.reread for piece in again.slices)
        # They are added to, too.
        state.memories = {source: dict(memory) for source, memory in snapshot.memories.items()}
        state._move_memories(snapshot.sources)
        return state
