"""How loaded every replica is, for routing by load (PSPS, equation 5): observations and ticks enter, loads leave."""

from collections import Counter

from elastream.control import Observation
from elastream.engine.settle import Settled
from elastream.lanes import LaneId
from elastream.topology import Graph

Load = tuple[tuple[float, ...], float]


class Loads:
    """Load of a replica: the share of its time it was busy in the last interval, and what it was sent since."""

    def __init__(self, graph: Graph, td_s: float) -> None:
        self._td_s = td_s
        self._senders_of: dict[str, frozenset[str]] = {}
        """Per operator that is routed to by load, the heads of the chains that send to it."""
        for head in (*graph.sources, *graph.served):
            for edge in graph.edges_leaving(head.name):
                if edge.grouping.kind == "load_balancing":
                    before = self._senders_of.get(edge.target, frozenset())
                    self._senders_of[edge.target] = before | {str(head.name)}
        self._busy: dict[LaneId, float] = {}
        self._cost: dict[str, float] = {}
        self._sent: Counter[LaneId] = Counter()

    def learn(self, observation: Observation) -> None:
        """An interval has ended."""
        self._sent.clear()
        self._busy.clear()
        for name in self._senders_of:
            operator = observation.operators[name]
            possible_s = observation.seconds * operator.usable
            if not possible_s:
                continue
            self._cost[name] = operator.service_seconds / (self._td_s * operator.usable)
            for lane in operator.lanes:
                self._busy[LaneId(name, lane.lane)] = min(1.0, lane.processed * operator.service_seconds / possible_s)

    def add(self, settled: Settled) -> None:
        """A tick has ended."""
        for piece in settled.appended if self._senders_of else ():
            if piece.operator in self._senders_of:
                self._sent[LaneId(piece.operator, piece.lane)] += piece.slice.rows

    def of(self, active: dict[str, tuple[int, ...]], senders: list[str]) -> dict[str, Load]:
        """For every operator that is routed to by load. Each of the senders takes the others to send as much as it does."""
        loads: dict[str, Load] = {}
        for name, heads in self._senders_of.items():
            cost = self._cost.get(name, 0.0)
            lanes = [LaneId(name, lane) for lane in active[name]]
            load = tuple(self._busy.get(lane, 0.0) + self._sent[lane] * cost for lane in lanes)
            loads[name] = load, cost * max(1, sum(sender in heads for sender in senders))
        return loads
