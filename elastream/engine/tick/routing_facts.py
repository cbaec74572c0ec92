"""What senders are told of the lanes behind them: how many there are, whose the keys are, what waits, and how loaded each is."""

from collections import Counter

from elastream.engine.messages import Loads, Routing
from elastream.engine.tick.lane_loads import LaneLoads
from elastream.engine.tick.works import UnderWay
from elastream.lanes.state import LedgerState
from elastream.topology import Graph


class RoutingFacts:
    """Looks at the state, the loads and the works under way, and changes nothing. In the tick's thread."""

    def __init__(self, graph: Graph, state: LedgerState, loads: LaneLoads, under_way: dict[int, UnderWay]) -> None:
        self._state = state
        self._loads = loads
        self._under_way = under_way
        self._counting: dict[str, list[str]] = {
            head.name: [e.target for e in graph.edges_leaving(head.name) if e.grouping.kind == "partial_key"]
            for head in (*graph.sources, *graph.served)
        }

    def routing(self) -> Routing:
        """For hosts, whenever it changes."""
        return Routing(self._state.sizes, self._state.owners, self._loads.splits)

    def queued(self, head: str) -> dict[str, list[int]]:
        """Per target behind a chain that wants to know, how many tuples wait in its active lanes."""
        targets = self._counting[head]
        if not targets:
            return {}
        found: dict[str, list[int]] = {}
        for target in targets:
            lanes = self._state.lanes_of(target)
            sizes = range(self._state.sizes[target])
            found[target] = [len(lanes[number]) if number in lanes else 0 for number in sizes]
        return found

    def loads_of(self, head: str) -> list[Loads]:
        """For the edges that leave a chain and are routed by load."""
        return self._loads.for_sender(head, self._senders(head)) if self._loads else []

    def _senders(self, head: str) -> Counter[str]:
        """Works under way that send to the same targets."""
        wanted = set(self._loads.targets_of(head))
        senders: Counter[str] = Counter()
        if wanted:
            for known in self._under_way.values():
                if known.operator:
                    senders.update(wanted.intersection(self._loads.targets_of(known.operator)))
        return senders
