"""The last ticks, kept in memory, and the observation that can be made of them."""

from collections import Counter, deque
from dataclasses import dataclass

from elastream.control import Observation, OperatorObservation, ReplicaObservation
from elastream.engine.settle import Settled
from elastream.lanes import Book, LaneId
from elastream.scoring.latency import Latencies
from elastream.topology import Graph, Kind

KEPT_TICKS = 1000


@dataclass(frozen=True)
class Tick:
    """One committed tick: when it ran, what it did, how many replicas there were."""

    number: int
    started_s: float
    ended_s: float
    settled: Settled
    replicas: dict[str, int]
    queued: dict[str, int]


class Measurements:
    """A window over the newest ticks."""

    def __init__(self, graph: Graph, slots: int) -> None:
        self._graph = graph
        self._slots = slots
        self._ticks: deque[Tick] = deque(maxlen=KEPT_TICKS)

    def add(self, tick: Tick) -> None:
        self._ticks.append(tick)

    def over(self, seconds: float, book: Book, active: dict[str, tuple[int, ...]]) -> Observation:
        """All ticks that ended in the last `seconds` before the newest; at least the newest."""
        ticks = list(self._ticks)
        recent = [tick for tick in ticks if tick.ended_s > ticks[-1].ended_s - seconds] if ticks else []
        before = (
            ticks[-len(recent) - 1].ended_s if len(recent) < len(ticks) else (recent[0].started_s if recent else 0.0)
        )
        latencies = Latencies()
        counts: dict[str, Counter[str]] = {operator.name: Counter() for operator in self._graph.operators}
        busy: Counter[LaneId] = Counter()
        lanes: dict[LaneId, Counter[str]] = {}
        sent: dict[str, Counter[str]] = {operator.name: Counter() for operator in self._graph.operators}
        for tick in recent:
            latencies.merge(tick.settled.latencies)
            for name, its in tick.settled.counts.items():
                if name in counts:
                    counts[name].update(its)
            for receipt in tick.settled.receipts:
                lane = LaneId(receipt.operator, receipt.lane)
                lanes.setdefault(lane, Counter())["processed"] += receipt.processed
                busy[lane] += receipt.busy_s  # type: ignore[assignment]
                for target, rows in receipt.delivered.items():
                    sent[target][receipt.operator] += rows
            for piece in tick.settled.appended:
                lanes.setdefault(LaneId(piece.operator, piece.lane), Counter())["received"] += piece.slice.rows
        operators: dict[str, OperatorObservation] = {
            operator.name: self._operator(
                operator.name, counts[operator.name], sent[operator.name], lanes, busy, book, active
            )
            for operator in self._graph.operators
        }
        total = sum(counts.values(), Counter[str]())
        outputs = {o.name for o in self._graph.operators if o.kind is Kind.OUTPUT}
        return Observation(
            tick=book.tick,
            ended_s=book.at_s,
            seconds=recent[-1].ended_s - before if recent else 0.0,
            ticks=len(recent),
            slots=self._slots,
            entered=int(total["entered"]),
            finished=int(total["finished"]),
            dropped=int(total["failed"] + total["late"] + total["overflowed"]),
            queued=sum(o.queued for name, o in operators.items() if name not in outputs),
            latency_mean_s=latencies.mean_s,
            latency_p95_s=latencies.percentile_s(0.95),
            operators=operators,
        )

    def _operator(
        self,
        name: str,
        counts: Counter[str],
        sent: Counter[str],
        lanes: dict[LaneId, Counter[str]],
        busy: Counter[LaneId],
        book: Book,
        active: dict[str, tuple[int, ...]],
    ) -> OperatorObservation:
        mine = sorted({lane for lane in (*lanes, *book.lanes) if lane.operator == name})
        replicas = tuple(
            ReplicaObservation(
                lane.lane,
                lane.lane in active.get(name, ()),
                lanes.get(lane, Counter())["received"],
                lanes.get(lane, Counter())["processed"],
                len(book.lanes[lane]) if lane in book.lanes else 0,
                float(busy[lane]),
            )
            for lane in mine
        )
        served = counts["processed"] + counts["failed"]
        return OperatorObservation(
            operator=name,
            replicas=len(active.get(name, ())) or self._graph[name].replicas.start,
            received=int(counts["received"]),
            received_from={source: int(rows) for source, rows in sent.items()},
            processed=int(counts["processed"]),
            emitted=int(counts["emitted"]),
            queued=sum(replica.queued for replica in replicas),
            dropped=int(counts["failed"] + counts["late"] + counts["overflowed"]),
            busy_seconds=float(counts["busy_s"]),
            service_seconds=float(counts["busy_s"]) / served if served else 0.0,
            lanes=replicas,
        )
