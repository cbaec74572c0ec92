"""The state of a base: everything its ledger says, in memory. Entries are applied one after another."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import Entry, Given, Memory, Reread, Snapshot
from elastream.lanes.queues import LaneQueue
from elastream.lanes.segments import LaneId, SchemaId, Slice
from elastream.lanes.state_log import StateLog, Whole


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
        self.owners: dict[str, list[int]] = {}
        """Per operator that is reached by keys, the lane of each key group."""
        self.hash_version = 0
        self.states: dict[str, str] = {}
        """Per keyed operator, the columns of its key and state."""
        self.watermarks: dict[str, float] = {}
        self.logs: dict[str, StateLog] = {}
        """Per keyed operator, what it knows."""
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
        freed += self._apply_states(entry)
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
        self.watermarks.update(entry.watermarks)
        self.estimates.update(entry.estimates)
        if entry.outputs is not None:
            self.outputs = entry.outputs
        self.hash_version = entry.hash_version or self.hash_version
        for operator, moved in entry.owners.items():
            filled += self.move_groups(operator, moved)
        self.plan(entry.given, entry.offer)
        self.reach(entry)
        return Applied(freed, filled)

    def plan(self, given: Iterable[Given], offer: int = -1) -> None:
        """Sinks and Spark are given tuples; an offer below 0 is none."""
        for one in given:
            self.given[LaneId(one.operator, one.lane)] = one
        self.offer = max(self.offer, offer)

    def reach(self, entry: Entry) -> None:
        """Everything in this entry is applied."""
        self.entry, self.at_s = entry.number, entry.at_s

    def _apply_states(self, entry: Entry) -> list[str]:
        """Gives the segments that no slice names any more. A whole has all changes before the number that it tells."""
        released: list[Slice] = []
        for operator in entry.forgotten:
            self.states.pop(operator, None)
            released += self.logs.pop(operator, StateLog()).slices()
        for operator, columns in entry.states.items():
            self.states[operator] = columns
            self.logs.setdefault(operator, StateLog())
        for whole in entry.wholes:
            log = self.logs[whole.operator]
            self._uses.update(piece.segment for piece in whole.slices)
            # Entries of 0.2 do not tell it: there a whole has all changes before its entry.
            since = log.next_number if whole.since < 0 else whole.since
            added = Whole(since, whole.keys, whole.size, whole.slices, whole.checksum)
            released += log.add_whole(whole.group, added)
        for change in entry.changes:
            self._uses[change.slice.segment] += 1
            self.logs[change.operator].add(change.slice, change.sums)
        return self._release(released)

    def move_groups(self, operator: str, moved: dict[int, int]) -> list[LaneId]:
        """Key groups change hands, and what waits of them goes to the end of their new lanes; gives those.

        Nothing of these groups may be under way or given, and their new lanes have had nothing of them: so each stays in order.
        """
        owners = self.owners.get(operator)
        if owners is None:
            # The groups of a new operator: nothing can wait.
            self.owners[operator] = [moved[group] for group in range(len(moved))]
            return []
        self.owners[operator] = [moved.get(group, lane) for group, lane in enumerate(owners)]
        filled: dict[LaneId, None] = {}
        for giver in sorted({owners[group] for group in moved}):
            mine = frozenset(group for group in moved if owners[group] == giver)
            queue = self.queue(LaneId(operator, giver))
            before = Counter(piece.segment for piece in queue.slices)
            for piece in queue.give_up(mine):
                for lane_number, part in piece.moved_to(moved.__getitem__):
                    lane = LaneId(operator, lane_number)
                    self.queue(lane).append(part)
                    self._uses[part.segment] += 1
                    filled[lane] = None
            self._uses.update(piece.segment for piece in queue.slices)
            self._uses.subtract(before)
        return list(filled)

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
            owners=self.owners,
            hash_version=self.hash_version,
            states=self.states,
            watermarks=self.watermarks,
            logs={name: (log.next_number, list(log.changes), log.wholes) for name, log in self.logs.items()},
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
        state.owners = {operator: list(owners) for operator, owners in snapshot.owners.items()}
        state.hash_version = snapshot.hash_version
        state.states, state.watermarks = dict(snapshot.states), dict(snapshot.watermarks)
        for operator, (number, changes, wholes) in snapshot.logs.items():
            log = state.logs[operator] = StateLog(number)
            log.wholes = dict(wholes)
            for change in changes:
                log.put(change)
            state._uses.update(piece.segment for piece in log.slices())
        state._uses.update(piece.segment for again in snapshot.reread for piece in again.slices)
        # They are added to, too.
        state.memories = {source: dict(memory) for source, memory in snapshot.memories.items()}
        state._move_memories(snapshot.sources)
        return state
