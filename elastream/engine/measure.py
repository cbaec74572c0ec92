"""The last ticks, kept in memory, and the observation that can be made of them."""

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from statistics import median

from elastream.control import Observation, OperatorObservation, ReplicaObservation
from elastream.control.observation import Role
from elastream.engine.estimates import Estimates
from elastream.engine.settle import Settled
from elastream.lanes import Book, LaneId
from elastream.scoring.latency import Latencies
from elastream.topology import Graph, Kind, Operator

KEPT_TICKS = 1000

FIRST_OVERHEAD_S = 0.1
"""What a tick is taken to cost until one has been measured."""


_NOTHING: Counter[str] = Counter()


@dataclass(frozen=True)
class Tick:
    """One committed tick: when it ran, what it did, how many replicas there were."""

    number: int
    started_s: float
    ended_s: float
    settled: Settled
    replicas: dict[str, int]
    queued: dict[str, int]
    waited_s: float = 0.0
    """How long it did not begin, because nothing was due."""

    @property
    def overhead_s(self) -> float:
        """What of it was neither waiting nor serving."""
        return max(0.0, self.ended_s - self.started_s - self.waited_s - self.settled.longest_task_s)


@dataclass(frozen=True)
class Scene:
    """What an observation needs besides the ticks: how things are at its end."""

    book: Book
    active: dict[str, tuple[int, ...]]
    estimates: Estimates
    unread: dict[str, int]
    """Per source, the tuples that are due and not read yet."""
    budget_s: float
    """How long a replica may serve in one tick."""
    slots: int
    """Tasks that can run at once."""
    lag: dict[str, dict[str, int]] = field(default_factory=dict)
    """Per source and part of it, where a source knows its parts, the tuples that are there and not read yet."""


class Totals:
    """Sums over some ticks; adding one is cheap, so that an interval costs nothing at its end."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._head_of: dict[str, str] = {
            member.name: head.name for head in (*graph.sources, *graph.served) for member in graph.chain(head.name)
        }
        self.began_s: float | None = None
        self.ended_s = 0.0
        self.ticks = 0
        self.overheads_s: list[float] = []
        self._latencies = Latencies()
        self._counts: dict[str, Counter[str]] = {operator.name: Counter() for operator in graph.operators}
        self._lanes: defaultdict[LaneId, Counter[str]] = defaultdict(Counter)
        self._sent: defaultdict[LaneId, Counter[str]] = defaultdict(Counter)

    def add(self, tick: Tick) -> None:
        if self.began_s is None:
            self.began_s = tick.started_s
        self.ended_s = tick.ended_s
        self.ticks += 1
        if tick.settled.longest_task_s:
            self.overheads_s.append(tick.overhead_s)
        self._latencies.merge(tick.settled.latencies)
        for name, its in tick.settled.counts.items():
            if name in self._counts:
                self._counts[name].update(its)
        for receipt in tick.settled.receipts:
            head = self._head_of[receipt.operator]
            lane = self._lanes[LaneId(head, receipt.lane)]
            lane["busy_s"] += receipt.busy_s  # type: ignore[assignment]
            lane["dropped"] += receipt.failed + receipt.late
            if receipt.operator == head:
                lane["processed"] += receipt.processed
                lane["served"] += receipt.processed + receipt.failed
            for target, lanes in receipt.delivered.items():
                for number, rows in lanes.items():
                    self._sent[LaneId(target, number)][head] += rows
        for overflowed, rows in tick.settled.overflowed.items():
            self._lanes[overflowed]["dropped"] += rows

    def observation(self, scene: Scene, overhead_s: float) -> Observation:
        operators: dict[str, OperatorObservation] = {}
        of: dict[str, list[LaneId]] = {}
        for lane in sorted({*self._lanes, *self._sent, *scene.book.lanes}):
            of.setdefault(lane.operator, []).append(lane)
        for operator in self._graph.operators:
            operators[operator.name] = self._operator(operator, of.get(operator.name, []), scene, overhead_s)
        total = sum(self._counts.values(), Counter[str]())
        return Observation(
            tick=scene.book.tick,
            ended_s=self.ended_s or scene.book.at_s,
            seconds=self.ended_s - self.began_s if self.began_s is not None else 0.0,
            ticks=self.ticks,
            slots=scene.slots,
            entered=int(total["entered"]),
            finished=int(total["finished"]),
            dropped=int(total["failed"] + total["late"] + total["overflowed"]),
            queued=sum(o.queued for o in operators.values() if o.role == "operator"),
            latency_mean_s=self._latencies.mean_s,
            latency_p95_s=self._latencies.percentile_s(0.95),
            operators=operators,
        )

    def _operator(self, operator: Operator, of: list[LaneId], scene: Scene, overhead_s: float) -> OperatorObservation:
        name, role = operator.name, _role(operator)
        active = scene.active.get(name, ())
        lanes = tuple(self._replica(lane, scene, lane.lane in active) for lane in of)
        counts = self._counts[name]
        received_from: Counter[str] = Counter({self._head_of[edge.source]: 0 for edge in self._graph.edges_into(name)})
        for lane in lanes:
            received_from.update(lane.received_from)
        busy_s = sum(lane.busy_seconds for lane in lanes) if lanes else float(counts["busy_s"])
        served = sum(self._lanes[lane]["served"] for lane in of if lane in self._lanes)
        service_s = busy_s / served if served else scene.estimates.service_s.get(name, 0.0)
        last = self._graph.chain(name)[-1].name if role != "chained" else name
        return OperatorObservation(
            operator=name,
            replicas=len(active) or operator.replicas.start,
            received=int(counts["received"]),
            received_from=dict(received_from),
            processed=int(counts["processed"]),
            emitted=int(self._counts[last]["emitted"]),
            queued=scene.unread.get(name, 0) if role == "source" else sum(lane.queued for lane in lanes),
            dropped=int(counts["failed"] + counts["late"] + counts["overflowed"]),
            busy_seconds=busy_s,
            service_seconds=service_s,
            lanes=lanes,
            role=role,
            least=operator.replicas.least,
            most=operator.replicas.most,
            waits=operator.waits,
            usable=usable_share(service_s, scene.budget_s, overhead_s),
            lag=scene.lag.get(name, {}),
        )

    def _replica(self, lane: LaneId, scene: Scene, active: bool) -> ReplicaObservation:
        its, sent = self._lanes.get(lane, _NOTHING), self._sent.get(lane, _NOTHING)
        return ReplicaObservation(
            lane=lane.lane,
            active=active,
            received=sum(sent.values()),
            processed=int(its["processed"]),
            queued=len(scene.book.lanes[lane]) if lane in scene.book.lanes else 0,
            busy_seconds=float(its["busy_s"]),
            received_from=dict(sent),
            dropped=int(its["dropped"]),
        )


class Measurements:
    """A window over the newest ticks, and the interval that is going on."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._ticks: deque[Tick] = deque(maxlen=KEPT_TICKS)
        self._interval = Totals(graph)
        self._overhead_s = FIRST_OVERHEAD_S

    def add(self, tick: Tick) -> None:
        self._ticks.append(tick)
        self._interval.add(tick)

    def over(self, seconds: float, scene: Scene) -> Observation:
        """All ticks that ended in the last `seconds` before the newest; at least the newest."""
        ticks = list(self._ticks)
        totals = Totals(self._graph)
        for tick in ticks:
            if tick.ended_s > ticks[-1].ended_s - seconds:
                totals.add(tick)
        return totals.observation(scene, self._overhead_s)

    def interval(self, scene: Scene) -> Observation:
        """Everything since the last time this was asked."""
        ended, self._interval = self._interval, Totals(self._graph)
        if ended.overheads_s:
            # The median: one pause of a garbage collector says nothing of the ticks to come.
            self._overhead_s = median(ended.overheads_s)
        return ended.observation(scene, self._overhead_s)


def usable_share(service_s: float, budget_s: float, overhead_s: float) -> float:
    """The share of its time that a replica with enough to do serves: a budget's worth of whole tuples in each tick."""
    serving_s = max(1, int(budget_s / service_s)) * service_s if service_s else budget_s
    return serving_s / (serving_s + overhead_s)


def _role(operator: Operator) -> Role:
    if operator.kind is Kind.SOURCE:
        return "source"
    if operator.chained:
        return "chained"
    return "output" if operator.kind is Kind.OUTPUT else "operator"
