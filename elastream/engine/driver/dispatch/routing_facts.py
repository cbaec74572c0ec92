"""What senders are told of the lanes behind them: how many there are, whose the keys are, what waits, and how loaded each is."""

from collections import Counter

from elastream.engine.driver.dispatch.lane_loads import LaneLoads
from elastream.engine.driver.dispatch.redirections import Redirections
from elastream.engine.driver.dispatch.works import WorkTable
from elastream.engine.messages import Loads, Routing
from elastream.lanes.state import LedgerState
from elastream.topology import Graph


class RoutingFacts:
    """Looks at the state, the loads and the works under way, and changes nothing. In the driver's thread only."""

    def __init__(
        self, graph: Graph, state: LedgerState, loads: LaneLoads, redirections: Redirections, works: WorkTable
    ) -> None:
        self._state = state
        self._loads = loads
        self._redirections = redirections
        self._works = works
        self._counting: dict[str, list[str]] = {
            head.name: [e.target for e in graph.edges_leaving(head.name) if e.grouping.needs_queued]
            for head in (*graph.sources, *graph.served)
        }

    def routing(self) -> Routing:
        """For hosts, whenever it changes."""
        return Routing(self._state.sizes, self._state.owners, self._redirections.splits)

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
            for known in self._works.all():
                if known.operator:
                    senders.update(wanted.intersection(self._loads.targets_of(known.operator)))
        return senders
