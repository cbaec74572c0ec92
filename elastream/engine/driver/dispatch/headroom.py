"""Back-pressure: how many tuples a sender may take while full lanes downstream make it wait."""

import math

from elastream import rules
from elastream.engine.driver.commit.estimates import Estimates
from elastream.lanes.state import LedgerState
from elastream.settings import Settings
from elastream.topology import Graph, Kind

_AT_MOST_ONE = (Kind.MAP, Kind.FILTER, Kind.SOURCE)
"""Kinds that give no more tuples than they take."""


class Headroom:
    """Of lanes that are bounded by `q_size` and whose senders wait. Works under way have reserved what they may still send."""

    def __init__(self, graph: Graph, settings: Settings, state: LedgerState, estimates: Estimates) -> None:
        self._graph = graph
        self._state = state
        self._estimates = estimates
        self._q_size = settings.queues.q_size if settings.queues.on_full == "wait" else None
        self._reserved: dict[str, int] = {}
        """Per operator, tuples that works under way may put into each of its lanes."""
        self._senders: dict[str, int] = {}
        self._by_work: dict[int, list[tuple[str, int]]] = {}

    @property
    def bounded(self) -> bool:
        return self._q_size is not None

    def for_sender(self, head: str) -> int:
        """The most tuples that the next work of this chain may take."""
        if self._q_size is None:
            return rules.MOST_ROWS
        room = rules.MOST_ROWS
        for edge in self._graph.edges_leaving(head):
            if self._graph[edge.target].kind is Kind.OUTPUT:
                continue
            free, lanes = self._free(edge.target), self._spread(edge.target, even=edge.grouping.even)
            room = min(room, rules.fits(free, lanes, self._fan_out(head), self._senders.get(edge.target, 0)))
        return max(0, room)

    def reserve(self, work: int, head: str, rows: int) -> None:
        if self._q_size is None:
            return
        reserved: list[tuple[str, int]] = []
        for edge in self._graph.edges_leaving(head):
            lanes = self._spread(edge.target, even=edge.grouping.even)
            each = math.ceil(rows * self._fan_out(head) / lanes)
            reserved.append((edge.target, each))
            self._reserved[edge.target] = self._reserved.get(edge.target, 0) + each
            self._senders[edge.target] = self._senders.get(edge.target, 0) + 1
        self._by_work[work] = reserved

    def release(self, work: int) -> None:
        for target, each in self._by_work.pop(work, ()):
            self._reserved[target] -= each
            self._senders[target] -= 1

    def _free(self, target: str) -> int:
        assert self._q_size is not None
        lanes = self._state.lanes_of(target)
        active = range(self._state.sizes[target])
        fullest = max((len(lanes[number]) for number in active if number in lanes), default=0)
        return max(0, self._q_size - fullest - self._reserved.get(target, 0))

    def _spread(self, target: str, *, even: bool) -> int:
        """Among how many lanes tuples are shared out evenly; where keys choose, they may all choose the fullest one."""
        return self._state.sizes[target] if even else 1

    def _fan_out(self, head: str) -> float:
        if all(member.kind in _AT_MOST_ONE for member in self._graph.chain(head)):
            return 1.0
        return max(1.0, self._estimates.fan_out.get(head, 1.0))
