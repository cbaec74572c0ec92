"""How loaded every replica is, for routing by load.

`load_balancing` is equation 5 of PSPS: the share of its time that a replica was busy in the last interval, plus what it was
sent since. `least_loaded` looks ahead instead: what waits in front of a replica, over what it can serve in an interval.
`redirection` is the load ratio of Dr-Stream, equation 5, and is told only while the load is uneven.
"""

from collections import Counter

from elastream import rules
from elastream.control import Observation
from elastream.engine.messages import Loads
from elastream.engine.tick.estimates import Estimates
from elastream.engine.tick.merge import TickResult
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.topology import Graph

KINDS = ("load_balancing", "least_loaded", "redirection")


class LaneLoads:
    """For every operator that is routed to by load."""

    def __init__(
        self, graph: Graph, state: LedgerState, estimates: Estimates, interval_s: float, q_size: int | None
    ) -> None:
        self._state = state
        self._estimates = estimates
        self._interval_s = interval_s
        self._q_size = q_size
        self._edges: dict[str, list[tuple[str, str]]] = {}
        """Per head of a chain: (grouping, target)."""
        for head in (*graph.sources, *graph.served):
            for edge in graph.edges_leaving(head.name):
                if edge.grouping.kind in KINDS and not edge.grouping.columns:
                    self._edges.setdefault(head.name, []).append((edge.grouping.kind, edge.target))
        self._targets = frozenset(target for edges in self._edges.values() for _, target in edges)
        self.redirectable = frozenset(
            target for edges in self._edges.values() for kind, target in edges if kind == "redirection"
        )
        self.redirecting: set[str] = set()
        """Those of which tuples are redirected now."""
        self.splits: dict[str, dict[int, list[int]]] = {}
        """Per operator that can merge parts of a state: keys by their hash, and the groups to which each is dealt out."""
        self._cost: dict[str, float] = {}
        self._busy: dict[LaneId, float] = {}
        self._sent: Counter[LaneId] = Counter()

    def __bool__(self) -> bool:
        return bool(self._targets)

    def length(self, operator: str) -> float:
        """How many tuples in front of a replica count as a full queue; 0 while that is not known."""
        return rules.full_queue(self._q_size, self._estimates.of(operator))

    def ratios(self, operator: str) -> list[float]:
        """The load ratio of each active lane."""
        lanes, length = self._state.lanes_of(operator), self.length(operator)
        sizes = range(self._state.sizes[operator])
        return [len(lanes[number]) / length if length and number in lanes else 0.0 for number in sizes]

    def learn(self, observation: Observation) -> None:
        """An interval has ended."""
        self._sent.clear()
        self._busy.clear()
        if not observation.seconds:
            return
        for name in self._targets:
            operator = observation.operators[name]
            self._cost[name] = operator.service_seconds / self._interval_s
            for lane in operator.lanes:
                share = lane.processed * operator.service_seconds / observation.seconds
                self._busy[LaneId(name, lane.lane)] = min(1.0, share)

    def add(self, result: TickResult) -> None:
        """A turn has ended."""
        for lane, senders in result.sent.items() if self._targets else ():
            if lane.operator in self._targets:
                self._sent[lane] += senders.total()

    def for_sender(self, head: str, senders: Counter[str]) -> list[Loads]:
        """For the edges that leave this chain. `senders`: works under way, per target, which send too and do not see each other."""
        found = []
        for grouping, target in self._edges.get(head, ()):
            if grouping == "redirection":
                length = self.length(target)
                if target in self.redirecting and length:
                    found.append(Loads(grouping, target, self.ratios(target), max(1, senders[target] + 1) / length))
                continue
            cost = self._cost.get(target, 0.0)
            lanes = [LaneId(target, number) for number in range(self._state.sizes[target])]
            load = [self._load(grouping, lane, cost) for lane in lanes]
            found.append(Loads(grouping, target, load, cost * max(1, senders[target] + 1)))
        return found

    def targets_of(self, head: str) -> list[str]:
        return [target for _, target in self._edges.get(head, ())]

    def _load(self, grouping: str, lane: LaneId, cost: float) -> float:
        if grouping == "least_loaded":
            queue = self._state.lanes.get(lane)
            return len(queue) * cost if queue is not None else 0.0
        return self._busy.get(lane, 0.0) + self._sent[lane] * cost
