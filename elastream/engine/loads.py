"""How loaded every replica is, for routing by load: observations, ticks and queues enter, loads leave.

`load_balancing` is equation 5 of PSPS: the share of its time that a replica was busy in the last interval, plus what it was
sent since. `least_loaded` looks ahead instead: what waits in front of a replica, over what it can serve in an interval.
"""

from collections import Counter

from elastream.control import Observation
from elastream.engine.settle import Settled
from elastream.lanes import LaneId
from elastream.topology import Graph

Load = tuple[tuple[float, ...], float]
"""The load of each active lane, and what a tuple adds to it."""

KINDS = ("load_balancing", "least_loaded")


class Loads:
    """For every operator that is routed to by load."""

    def __init__(self, graph: Graph, td_s: float) -> None:
        self._td_s = td_s
        self._senders: dict[str, dict[str, set[str]]] = {kind: {} for kind in KINDS}
        """Kind of grouping -> operator -> the heads of the chains that send to it."""
        for head in (*graph.sources, *graph.served):
            for edge in graph.edges_leaving(head.name):
                if edge.grouping.kind in KINDS:
                    self._senders[edge.grouping.kind].setdefault(edge.target, set()).add(head.name)
        self._targets = frozenset(name for its in self._senders.values() for name in its)
        self._cost: dict[str, float] = {}
        self._busy: dict[LaneId, float] = {}
        self._sent: Counter[LaneId] = Counter()

    def learn(self, observation: Observation) -> None:
        """An interval has ended."""
        self._sent.clear()
        self._busy.clear()
        for name in self._targets:
            operator = observation.operators[name]
            possible_s = observation.seconds * operator.usable
            if not possible_s:
                continue
            self._cost[name] = operator.service_seconds / (self._td_s * operator.usable)
            for lane in operator.lanes:
                self._busy[LaneId(name, lane.lane)] = min(1.0, lane.processed * operator.service_seconds / possible_s)

    def add(self, settled: Settled) -> None:
        """A tick has ended."""
        for piece in settled.appended if self._targets else ():
            if piece.operator in self._targets:
                self._sent[LaneId(piece.operator, piece.lane)] += piece.slice.rows

    def of(
        self, active: dict[str, tuple[int, ...]], senders: list[str], waiting: dict[LaneId, int]
    ) -> dict[str, dict[str, Load]]:
        """By kind of grouping and operator. `waiting`: what each lane will still have when the tick is over.

        Each of the senders takes the others to send as much as it does, for it does not see them.
        """
        loads: dict[str, dict[str, Load]] = {}
        for kind, targets in self._senders.items():
            for name, heads in targets.items():
                cost = self._cost.get(name, 0.0)
                load = tuple(self._load(kind, LaneId(name, lane), cost, waiting) for lane in active[name])
                many = max(1, sum(sender in heads for sender in senders))
                loads.setdefault(kind, {})[name] = load, cost * many
        return loads

    def _load(self, kind: str, lane: LaneId, cost: float, waiting: dict[LaneId, int]) -> float:
        if kind == "least_loaded":
            return waiting.get(lane, 0) * cost
        return self._busy.get(lane, 0.0) + self._sent[lane] * cost
