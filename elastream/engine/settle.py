"""From receipts to an entry: what a tick did to every lane, source and counter. Pure: nothing is applied here."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from elastream import errors
from elastream.engine.program import DEAD_LETTERS
from elastream.engine.settings import Settings
from elastream.engine.work import OperatorReceipt, Receipt
from elastream.lanes import Appended, Book, LaneId
from elastream.lanes.book import Counts
from elastream.scoring.latency import Latencies
from elastream.topology import Graph, Kind


@dataclass(frozen=True)
class Settled:
    """A tick's results, checked and added up."""

    consumed: tuple[tuple[str, int, int], ...]
    appended: tuple[Appended, ...]
    schemas: dict[str, str]
    counts: dict[str, Counts]
    next_of: dict[str, int]
    """Per replay source, the number of the next tuple to make."""
    receipts: tuple[OperatorReceipt, ...]
    latencies: Latencies
    overflowed: Counter[LaneId]
    segments: frozenset[str]
    """All that the tick wrote."""
    longest_task_s: float
    """How long the task that was busiest served tuples."""
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Per source in which rows may come again, which of the last of them came in this tick."""


def settle(graph: Graph, settings: Settings, book: Book, receipts: list[Receipt]) -> Settled:
    """Raises the first error that a task met; then nothing of the tick counts."""
    raise_first_error(receipts)
    operators = [operator for receipt in receipts for operator in receipt.operators]
    consumed = tuple((r.operator, r.lane, r.consumed) for r in operators if r.consumed)
    offered = [appended for receipt in receipts for appended in receipt.appended]
    appended, overflowed = _fit(graph, settings, book, consumed, offered)
    latencies = Latencies()
    for receipt in receipts:
        if receipt.latencies:
            latencies.merge(Latencies.from_json(receipt.latencies))
    return Settled(
        consumed,
        tuple(appended),
        {key: text for receipt in receipts for key, text in receipt.schemas.items() if key not in book.schemas},
        _counts(graph, operators, overflowed),
        _next_of(receipts),
        tuple(operators),
        latencies,
        overflowed,
        frozenset(piece.slice.segment for piece in offered),
        max((receipt.served_s for receipt in receipts), default=0.0),
        _memories(receipts),
    )


def with_lost(settled: Settled, lost: dict[str, Counts]) -> Settled:
    """The same tick, telling also of what a restart before it dropped."""
    counts: dict[str, Counts] = {name: dict(its) for name, its in settled.counts.items()}
    for name, its in lost.items():
        mine = counts.setdefault(name, {})
        mine["overflowed"] = mine.get("overflowed", 0) + its["overflowed"]
    return replace(settled, counts=counts)


def raise_first_error(receipts: Iterable[Receipt]) -> None:
    for receipt in receipts:
        if receipt.error is not None:
            raise getattr(errors, receipt.error["type"])(receipt.error["message"])


def _memories(receipts: list[Receipt]) -> dict[str, dict[str, Any]]:
    """A partition is read by one task."""
    memories: dict[str, dict[str, Any]] = {}
    for receipt in receipts:
        for source, its in receipt.memories.items():
            memories.setdefault(source, {}).update(its)
    return memories


def _next_of(receipts: list[Receipt]) -> dict[str, int]:
    stops: dict[str, int] = {}
    for receipt in receipts:
        for source in receipt.sources:
            stops[source.source] = max(source.stop, stops.get(source.source, 0))
    return stops


def _fit(
    graph: Graph, settings: Settings, book: Book, consumed: tuple[tuple[str, int, int], ...], offered: list[Appended]
) -> tuple[list[Appended], Counter[LaneId]]:
    """With bounded queues that drop, cut what does not fit in a lane; it is counted, not stored.

    Outputs and dead letters have left the stream: their readers come when they like, so they have no bound.
    """
    overflowed: Counter[LaneId] = Counter()
    if settings.q_size is None or settings.on_full == "wait":
        return offered, overflowed
    room: dict[LaneId, int] = defaultdict(lambda: settings.q_size or 0)
    for lane, queue in book.lanes.items():
        room[lane] = settings.q_size - len(queue)
    for operator, lane_number, rows in consumed:
        room[LaneId(operator, lane_number)] += rows
    kept = []
    for piece in offered:
        lane = LaneId(piece.operator, piece.lane)
        unbound = piece.operator == DEAD_LETTERS or graph[piece.operator].kind is Kind.OUTPUT
        fits = piece.slice.rows if unbound else max(0, min(piece.slice.rows, room[lane]))
        room[lane] -= fits
        overflowed[lane] += piece.slice.rows - fits
        if fits:
            kept.append(piece._replace(slice=piece.slice._replace(rows=fits)))
    return kept, overflowed


def _counts(graph: Graph, receipts: list[OperatorReceipt], overflowed: Counter[LaneId]) -> dict[str, Counts]:
    """What each operator's totals grow by, so that entered = finished + dropped + queued stays true.

    A tuple enters when a source makes it or when an operator makes more tuples than it took; it finishes at a sink or
    an output, or when an operator takes more than it gives.
    """
    counts: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for receipt in receipts:
        mine = counts[receipt.operator]
        for name in ("processed", "emitted", "failed", "late", "busy_s", "cpu_s"):
            mine[name] += getattr(receipt, name)
        for target, lanes in receipt.delivered.items():
            counts[target]["received"] += sum(lanes.values())
    for head, members in by_chain(graph, receipts).items():
        is_source = graph[head].kind is Kind.SOURCE
        taken = sum(r.processed if is_source else r.consumed for r in members if r.operator == head)
        given = sum(r.given + r.failed + r.late for r in members)
        at_sinks = sum(r.finished for r in members if graph[r.operator].kind is Kind.SINK)
        surplus = given + at_sinks - taken
        counts[head]["entered"] += max(0, surplus) + (taken if is_source else 0)
        counts[head]["finished"] += max(0, -surplus) + sum(r.finished for r in members)
    for lane, rows in overflowed.items():
        counts[lane.operator]["overflowed"] += rows
    return {operator: {name: value for name, value in its.items() if value} for operator, its in counts.items()}


def by_chain(graph: Graph, receipts: Iterable[OperatorReceipt]) -> dict[str, list[OperatorReceipt]]:
    """The receipts of each chain under the name of its head."""
    head_of: dict[str, str] = {
        member.name: head.name for head in (*graph.sources, *graph.served) for member in graph.chain(head.name)
    }
    chains: dict[str, list[OperatorReceipt]] = {}
    for receipt in receipts:
        chains.setdefault(head_of[receipt.operator], []).append(receipt)
    return chains
