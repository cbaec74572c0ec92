"""How loaded every replica is, for routing by load.

`load_balancing` is equation 5 of PSPS: the share of its time that a replica was busy in the last interval, plus what it was
sent since. `least_loaded` looks ahead instead: what waits in front of a replica, over what it can serve in an interval.
`redirection` is the load ratio of Dr-Stream, equation 5, and is told only while the load is uneven.
"""

import math
from collections import Counter, defaultdict

from elastream import rules
from elastream.engine.driver.commit.estimates import Estimates
from elastream.engine.driver.commit.merge import TickResult
from elastream.engine.driver.dispatch.redirections import Redirections
from elastream.engine.messages import Loads
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.routing import Grouping, LoadMeasure
from elastream.topology import Graph


class LaneLoads:
    """For every operator that is routed to by load."""

    def __init__(
        self,
        graph: Graph,
        state: LedgerState,
        estimates: Estimates,
        redirections: Redirections,
        interval_s: float,
        q_size: int | None,
    ) -> None:
        self._redirections = redirections
        self._state = state
        self._estimates = estimates
        self._interval_s = interval_s
        self._q_size = q_size
        self._edges: dict[str, list[tuple[Grouping, str]]] = {}
        """Per head of a chain: (grouping, target)."""
        for head in (*graph.sources, *graph.served):
            for edge in graph.edges_leaving(head.name):
                if edge.grouping.load is not None:
                    self._edges.setdefault(head.name, []).append((edge.grouping, edge.target))
        self._targets = frozenset(target for edges in self._edges.values() for _, target in edges)
        self.redirectable = frozenset(
            target for edges in self._edges.values() for grouping, target in edges if grouping.load is LoadMeasure.RATIO
        )
        self._head_of: dict[str, str] = {
            member.name: target for target in self._targets for member in graph.chain(target)
        }
        self._cost: dict[str, float] = {}
        """Per operator, the share of an interval that a tuple takes."""
        self._busy: dict[LaneId, float] = {}
        """The share of the last interval in which a lane was busy."""
        # Since that interval ended:
        self._began_s = -math.inf
        self._sent: Counter[LaneId] = Counter()
        self._processed: Counter[LaneId] = Counter()
        self._served: Counter[str] = Counter()
        self._busy_s: defaultdict[str, float] = defaultdict(float)

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

    def add(self, result: TickResult) -> None:
        """A turn has ended."""
        if not self._targets:
            return
        for lane, senders in result.sent.items():
            if lane.operator in self._targets:
                self._sent[lane] += senders.total()
        for receipt in result.receipts:
            target = self._head_of.get(receipt.operator)
            if target is not None:
                self._busy_s[target] += receipt.busy_s
                if receipt.operator == target:
                    self._served[target] += receipt.processed + receipt.failed
                    self._processed[LaneId(target, receipt.lane)] += receipt.processed

    def step(self, now: float) -> None:
        """Called in every turn; when an interval has ended, what was busy in it counts from then on."""
        seconds = now - self._began_s
        if not self._targets or seconds < self._interval_s:
            return
        for target in self._targets:
            served = self._served[target]
            service_s = self._busy_s[target] / served if served else max(0.0, self._estimates.of(target))
            self._cost[target] = service_s / self._interval_s
        self._busy = {
            lane: min(1.0, processed * self._cost[lane.operator] * self._interval_s / seconds)
            for lane, processed in self._processed.items()
        }
        self._began_s = now
        for totals in (self._sent, self._busy_s, self._served, self._processed):
            totals.clear()

    def for_sender(self, head: str, senders: Counter[str]) -> list[Loads]:
        """For the edges that leave this chain. `senders`: works under way, per target, which send too and do not see each other."""
        loads = []
        for grouping, target in self._edges.get(head, ()):
            if grouping.load is LoadMeasure.RATIO:
                length = self.length(target)
                if target in self._redirections.tuples and length:
                    loads.append(
                        Loads(grouping.name, target, self.ratios(target), max(1, senders[target] + 1) / length)
                    )
                continue
            cost = self._cost.get(target, 0.0)
            lanes = [LaneId(target, number) for number in range(self._state.sizes[target])]
            load = [self._load(grouping, lane, cost) for lane in lanes]
            loads.append(Loads(grouping.name, target, load, cost * max(1, senders[target] + 1)))
        return loads

    def targets_of(self, head: str) -> list[str]:
        return [target for _, target in self._edges.get(head, ())]

    def _load(self, grouping: Grouping, lane: LaneId, cost: float) -> float:
        if grouping.load is LoadMeasure.QUEUED:
            queue = self._state.lanes.get(lane)
            return len(queue) * cost if queue is not None else 0.0
        return self._busy.get(lane, 0.0) + self._sent[lane] * cost
