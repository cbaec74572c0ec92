"""Receipts added up: what the works that are done mean for lanes, sources and counters. Pure: nothing is applied here."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from elastream.engine.messages import LaneReceipt, Receipt, error_of
from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import GroupWhole, Memory, StateChange
from elastream.lanes.segments import Appended, LaneId
from elastream.lanes.state import LedgerState
from elastream.report.latency import Latencies
from elastream.settings import Settings
from elastream.topology import Graph, Kind


@dataclass
class TickResult:
    """The works of one turn, checked and added up."""

    consumed: list[tuple[str, int, int]] = field(default_factory=list)
    appended: list[Appended] = field(default_factory=list)
    counts: dict[str, OperatorCounts] = field(default_factory=dict)
    next_of: dict[str, int] = field(default_factory=dict)
    """Per replay source, the number of the next tuple to make."""
    receipts: list[LaneReceipt] = field(default_factory=list)
    sent: dict[LaneId, Counter[str]] = field(default_factory=dict)
    """Tuples that each lane was sent, by the head of the chain that sent them; also those that found it full."""
    latencies: Latencies = field(default_factory=Latencies)
    overflowed: Counter[LaneId] = field(default_factory=Counter)
    unused: list[str] = field(default_factory=list)
    """Segments of which nothing was kept."""
    changes: list[StateChange] = field(default_factory=list)
    wholes: list[GroupWhole] = field(default_factory=list)
    memories: dict[str, Memory] = field(default_factory=dict)
    """Per source in which rows may come again, which of the last of them came; only of the parts that were read."""


class ReceiptMerger:
    """Adds receipts up, for one graph."""

    def __init__(self, graph: Graph, settings: Settings) -> None:
        self._graph = graph
        self._q_size = settings.queues.q_size if settings.queues.on_full == "drop" else None
        self._sources = frozenset(source.name for source in graph.sources)
        self._sinks = frozenset(o.name for o in graph.operators if o.kind is Kind.SINK)
        self._unbound = frozenset(o.name for o in graph.operators if o.kind is Kind.OUTPUT) | {DEAD_LETTERS}

    def merge(self, state: LedgerState, receipts: Iterable[Receipt]) -> TickResult:
        result = TickResult()
        for receipt in receipts:
            self._add(result, receipt, state.owners)
        if self._q_size is not None and result.appended:
            self._cut(result, state, self._q_size)
        return result

    def _add(self, result: TickResult, receipt: Receipt, owners: dict[str, list[int]]) -> None:
        result.wholes += receipt.wholes
        if not receipt.operators:
            return
        result.changes += receipt.changes
        head = receipt.head
        result.receipts += receipt.operators
        taken = given = at_sinks = finished = 0
        is_source = head in self._sources
        for lane in receipt.operators:
            counts = _of(result.counts, lane.operator)
            counts.processed += lane.processed
            counts.emitted += lane.emitted
            counts.failed += lane.failed
            counts.late += lane.late
            counts.busy_s += lane.busy_s
            counts.cpu_s += lane.cpu_s
            if lane.consumed:
                result.consumed.append((lane.operator, lane.lane, lane.consumed))
            if lane.operator == head:
                taken += lane.processed if is_source else lane.consumed
            given += lane.failed + lane.late
            finished += lane.finished
            if lane.operator in self._sinks:
                at_sinks += lane.finished
        appended = [owned for piece in receipt.appended for owned in _owned(piece, owners)]
        for piece in appended:
            rows = piece.slice.rows
            if piece.operator != DEAD_LETTERS:
                _of(result.counts, piece.operator).received += rows
                if piece.operator != head:
                    # Parts of the states of split keys come from nobody else.
                    result.sent.setdefault(LaneId(piece.operator, piece.lane), Counter())[head] += rows
                given += rows
        result.appended += appended
        # A tuple enters when a source makes it, or when an operator gives more than it took; it finishes at a sink or an
        # output, or when an operator takes more than it gives.
        surplus = given + at_sinks - taken
        counts = _of(result.counts, head)
        counts.entered += max(0, surplus) + (taken if is_source else 0)
        counts.finished += max(0, -surplus) + finished
        for source in receipt.sources:
            result.next_of[source.source] = max(source.stop, result.next_of.get(source.source, 0))
        if receipt.latencies is not None:
            result.latencies.add_counts(*receipt.latencies)
        for name, memory in receipt.memories.items():
            # A partition is read by one task.
            result.memories.setdefault(name, {}).update(memory)

    def _cut(self, result: TickResult, state: LedgerState, q_size: int) -> None:
        """With bounded queues that drop, leave out what does not fit in a lane; it is counted, not stored.

        Outputs and dead letters have left the stream: their readers come when they like, so they have no bound.
        """
        room: defaultdict[LaneId, int] = defaultdict(int)
        for operator, lane_number, rows in result.consumed:
            room[LaneId(operator, lane_number)] += rows
        kept: list[Appended] = []
        offered = {piece.slice.segment for piece in result.appended}
        left: dict[LaneId, int] = {}
        for piece in result.appended:
            lane = LaneId(piece.operator, piece.lane)
            if piece.operator in self._unbound:
                kept.append(piece)
                continue
            if lane not in left:
                waiting = len(state.lanes[lane]) if lane in state.lanes else 0
                left[lane] = q_size - waiting + room[lane]
            fits = max(0, min(piece.slice.rows, left[lane]))
            left[lane] -= fits
            lost = piece.slice.rows - fits
            if lost:
                result.overflowed[lane] += lost
                _of(result.counts, lane.operator).overflowed += lost
            if fits:
                kept.append(piece._replace(slice=piece.slice._replace(rows=fits)))
        result.appended = kept
        result.unused = sorted(offered - {piece.slice.segment for piece in kept})


def _owned(piece: Appended, owners: dict[str, list[int]]) -> Iterator[Appended]:
    """The lanes that own its key groups now: groups may have moved since its sender was told who owns them."""
    if not piece.slice.runs:
        yield piece
        return
    known = owners[piece.operator]
    for lane, part in piece.slice.moved_to(known.__getitem__):
        yield piece if part.rows == piece.slice.rows and lane == piece.lane else Appended(piece.operator, lane, part)


def first_problem(receipts: Iterable[Receipt]) -> Exception | None:
    for receipt in receipts:
        if receipt.problem is not None:
            return error_of(receipt.problem)
    return None


def _of(counts: dict[str, OperatorCounts], operator: str) -> OperatorCounts:
    found = counts.get(operator)
    if found is None:
        found = counts[operator] = OperatorCounts()
    return found
