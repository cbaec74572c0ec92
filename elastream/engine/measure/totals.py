"""Sums over some ticks, and the observation that can be made of them."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from elastream import rules
from elastream.control import HostObservation, Observation, OperatorObservation, ReplicaObservation
from elastream.control.observation import Role
from elastream.engine.driver.ports import Tick
from elastream.engine.driver.status import NO_HOST, RunStatus
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.segments import LaneId
from elastream.report.latency import Latencies
from elastream.topology import Graph, Kind, Operator

KEPT_S = 60.0
"""How far back `observe` can look."""

SLOT_S = 0.05
"""Ticks are added up in slots of this length before they are kept."""

FINE_S, COARSE_S = 2.0, 1.0
"""Slots older than the first are added up to slots as long as the second: many small objects make collecting garbage slow."""

_NOTHING: Counter[str] = Counter()


@dataclass(frozen=True)
class Surroundings:
    """Facts about a run that only Spark knows."""

    slots: int
    unread: Mapping[str, int] = field(default_factory=dict)
    """Per streaming source, the tuples that are there and not read."""
    lag: Mapping[str, dict[str, int]] = field(default_factory=dict)
    """The same, per part of a source that knows its parts."""


@dataclass
class _LaneTotals:
    busy_s: float = 0.0
    cpu_s: float = 0.0
    dropped: int = 0
    processed: int = 0
    served: int = 0
    """Processed or failed."""


class Totals:
    """Sums over some ticks; adding one is cheap, so that an interval costs nothing at its end."""

    def __init__(self, graph: Graph, head_of: dict[str, str], queue_limit: int | None) -> None:
        self._graph = graph
        self._head_of = head_of
        self._queue_limit = queue_limit
        self.began_s: float | None = None
        self.ended_s = 0.0
        self.ticks = 0
        self.latencies = Latencies()
        self.counts: dict[str, OperatorCounts] = {}
        self._lanes: dict[LaneId, _LaneTotals] = {}
        self._sent: dict[LaneId, Counter[str]] = {}

    def add(self, tick: Tick) -> None:
        if self.began_s is None:
            self.began_s = tick.started_s
        self.ended_s = tick.ended_s
        self.ticks += 1
        result = tick.result
        self.latencies.merge(result.latencies)
        for name, counts in result.counts.items():
            mine = self.counts.get(name)
            if mine is None:
                mine = self.counts[name] = OperatorCounts()
            mine.add(counts)
        for receipt in result.receipts:
            head = self._head_of[receipt.operator]
            lane = self._lane(LaneId(head, receipt.lane))
            lane.busy_s += receipt.busy_s
            lane.cpu_s += receipt.cpu_s
            lane.dropped += receipt.failed + receipt.late
            if receipt.operator == head:
                lane.processed += receipt.processed
                lane.served += receipt.processed + receipt.failed
        for lane_id, senders in result.sent.items():
            self._sent_to(lane_id).update(senders)
        for overflowed, rows in result.overflowed.items():
            self._lane(overflowed).dropped += rows

    def merge(self, other: "Totals") -> None:
        """Ticks that came after these."""
        if self.began_s is None:
            self.began_s = other.began_s
        self.ended_s = other.ended_s
        self.ticks += other.ticks
        self.latencies.merge(other.latencies)
        for name, counts in other.counts.items():
            self.counts.setdefault(name, OperatorCounts()).add(counts)
        for lane_id, lane in other._lanes.items():
            mine = self._lane(lane_id)
            mine.busy_s += lane.busy_s
            mine.cpu_s += lane.cpu_s
            mine.dropped += lane.dropped
            mine.processed += lane.processed
            mine.served += lane.served
        for lane_id, senders in other._sent.items():
            self._sent_to(lane_id).update(senders)

    def observation(self, status: RunStatus, surroundings: Surroundings) -> Observation:
        lanes_of: dict[str, list[LaneId]] = {}
        for lane in sorted({*self._lanes, *self._sent, *status.lanes}):
            lanes_of.setdefault(lane.operator, []).append(lane)
        operators: dict[str, OperatorObservation] = {
            operator.name: self._operator(operator, lanes_of.get(operator.name, []), status, surroundings)
            for operator in self._graph.operators
        }
        total = OperatorCounts()
        for counts in self.counts.values():
            total.add(counts)
        seconds = self.ended_s - self.began_s if self.began_s is not None else 0.0
        return Observation(
            tick=status.entry,
            ended_s=self.ended_s or status.entry_at_s,
            seconds=seconds,
            ticks=self.ticks,
            slots=surroundings.slots,
            entered=total.entered,
            finished=total.finished,
            dropped=total.dropped,
            queued=sum(o.queued for o in operators.values() if o.role == "operator"),
            latency_mean_s=self.latencies.mean_s,
            latency_p95_s=self.latencies.percentile_s(0.95),
            operators=operators,
            hosts=self._hosts(status, seconds),
            fleet=status.fleet,
            latencies=dict(self.latencies.buckets),
            failed=total.failed,
        )

    def _hosts(self, status: RunStatus, seconds: float) -> tuple[HostObservation, ...]:
        """A process of Python uses one core at a time. What a lane used counts for the host in which it lives now."""
        cpu_s: dict[int, float] = {}
        for lane, totals in self._lanes.items():
            home = _home(lane, status)
            cpu_s[home] = cpu_s.get(home, 0.0) + totals.cpu_s
        return tuple(
            HostObservation(
                host.number,
                f"{host.machine}/{host.executor}",
                1.0,
                cpu_s.get(host.number, 0.0) / seconds if seconds else 0.0,
                *((host.usage.memory_bytes, host.usage.machine_cpu, host.usage.machine_memory) if host.usage else ()),
            )
            for host in sorted(status.hosts, key=lambda host: host.number)
        )

    def _operator(
        self, operator: Operator, lane_ids: list[LaneId], status: RunStatus, surroundings: Surroundings
    ) -> OperatorObservation:
        name, role = operator.name, _role(operator)
        size = status.replicas.get(name, 0)
        lanes = tuple(self._replica(lane, status, lane.lane < size) for lane in lane_ids)
        counts = self.counts.get(name) or OperatorCounts()
        received_from: Counter[str] = Counter({self._head_of[edge.source]: 0 for edge in self._graph.edges_into(name)})
        for lane in lanes:
            received_from.update(lane.received_from)
        busy_s = sum(lane.busy_seconds for lane in lanes) if lanes else counts.busy_s
        served = sum(self._lanes[lane].served for lane in lane_ids if lane in self._lanes)
        service_s = busy_s / served if served else status.service_s.get(name, 0.0)
        last = self._graph.chain(name)[-1].name if role != "chained" else name
        unread = surroundings.unread.get(name, status.unread.get(name, 0))
        cpu_s = sum(self.counts[m.name].cpu_s for m in self._members(name, role) if m.name in self.counts)
        return OperatorObservation(
            operator=name,
            replicas=size or operator.replicas.start,
            received=counts.received,
            received_from=dict(received_from),
            processed=counts.processed,
            emitted=self.counts[last].emitted if last in self.counts else 0,
            queued=unread if role == "source" else sum(lane.queued for lane in lanes),
            dropped=counts.dropped,
            late=counts.late,
            busy_seconds=busy_s,
            service_seconds=service_s,
            lanes=lanes,
            role=role,
            least=operator.replicas.least,
            most=operator.replicas.most,
            waits=status.waits.get(name, False),
            cpu_share=min(1.0, cpu_s / busy_s) if busy_s else 0.0,
            by_key=name in self._graph.reached_by_keys,
            lag=surroundings.lag.get(name, {}),
            length=rules.full_queue(self._queue_limit, service_s) if role == "operator" else 0.0,
        )

    def _members(self, name: str, role: Role) -> tuple[Operator, ...]:
        return (self._graph[name],) if role == "chained" else self._graph.chain(name)

    def _replica(self, lane: LaneId, status: RunStatus, active: bool) -> ReplicaObservation:
        totals, sent = self._lanes.get(lane) or _LaneTotals(), self._sent.get(lane, _NOTHING)
        known = status.lanes.get(lane)
        return ReplicaObservation(
            lane=lane.lane,
            active=active,
            received=sent.total(),
            processed=totals.processed,
            queued=known.queued if known is not None else 0,
            busy_seconds=totals.busy_s,
            received_from=dict(sent),
            dropped=totals.dropped,
            host=_home(lane, status),
        )

    def _lane(self, lane: LaneId) -> _LaneTotals:
        found = self._lanes.get(lane)
        if found is None:
            found = self._lanes[lane] = _LaneTotals()
        return found

    def _sent_to(self, lane: LaneId) -> Counter[str]:
        found = self._sent.get(lane)
        if found is None:
            found = self._sent[lane] = Counter()
        return found


class Measurements:
    """A window over the newest ticks, and the interval that is going on."""

    def __init__(self, graph: Graph, queue_limit: int | None = None) -> None:
        self._graph = graph
        self._queue_limit = queue_limit
        self._head_of: dict[str, str] = {
            member.name: head.name for head in (*graph.sources, *graph.served) for member in graph.chain(head.name)
        }
        self._fine: deque[Totals] = deque()
        self._coarse: deque[Totals] = deque()
        self._open: Totals | None = None
        """The slot that is going on; the others are in the interval already."""
        self._interval = self._new()
        self._interval_s: float | None = None

    def add(self, tick: Tick) -> None:
        if self._open is None or tick.ended_s - (self._open.began_s or 0.0) > SLOT_S:
            self._close_slot()
            self._open = self._new()
            self._grow_coarse(tick.ended_s)
        self._open.add(tick)

    def over(self, seconds: float, status: RunStatus, surroundings: Surroundings, wall_s: float) -> Observation:
        """All ticks of the last `seconds`."""
        totals = self._new()
        for slot in (*self._coarse, *self._fine, *([self._open] if self._open else [])):
            if slot.ended_s > wall_s - seconds:
                totals.merge(slot)
        totals.began_s, totals.ended_s = totals.began_s or wall_s - seconds, wall_s
        return totals.observation(status, surroundings)

    def interval(self, status: RunStatus, surroundings: Surroundings, wall_s: float) -> Observation:
        """Everything since the last time this was asked."""
        self._close_slot()
        ended, self._interval = self._interval, self._new()
        ended.began_s = ended.began_s if self._interval_s is None else self._interval_s
        ended.ended_s = self._interval_s = wall_s
        return ended.observation(status, surroundings)

    def _close_slot(self) -> None:
        if self._open is not None:
            self._interval.merge(self._open)
            self._fine.append(self._open)
            self._open = None

    def _grow_coarse(self, now_s: float) -> None:
        while self._fine and self._fine[0].ended_s < now_s - FINE_S:
            old, last = self._fine.popleft(), self._coarse[-1] if self._coarse else None
            if last is not None and old.ended_s - (last.began_s or 0.0) <= COARSE_S:
                last.merge(old)
            else:
                self._coarse.append(old)
        while self._coarse and self._coarse[0].ended_s < now_s - KEPT_S:
            self._coarse.popleft()

    def _new(self) -> Totals:
        return Totals(self._graph, self._head_of, self._queue_limit)


def _home(lane: LaneId, status: RunStatus) -> int:
    known = status.lanes.get(lane)
    return NO_HOST if known is None else known.host


def _role(operator: Operator) -> Role:
    if operator.kind is Kind.SOURCE:
        return "source"
    if operator.chained:
        return "chained"
    return "output" if operator.kind is Kind.OUTPUT else "operator"
