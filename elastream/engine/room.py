"""Bounded queues that make their senders wait: lanes as they are enter, how many tuples each sender may take leaves."""

from elastream.engine.estimates import Estimates
from elastream.engine.settings import Settings
from elastream.lanes import Book, LaneId
from elastream.topology import Graph, Kind

MOST_ROWS = 500_000
"""No task takes more tuples of one lane than this, however fast its operator is."""


class Room:
    """How many tuples a sender may take while full lanes downstream make it wait."""

    def __init__(
        self, graph: Graph, settings: Settings, book: Book, active: dict[str, tuple[int, ...]], estimates: Estimates
    ) -> None:
        self._graph = graph
        self._estimates = estimates
        self._free: dict[str, tuple[int, int]] = {}
        self._senders: dict[str, int] = {}
        if settings.q_size is None or settings.on_full == "drop":
            return
        for operator in graph.served:
            if operator.kind is Kind.OUTPUT:
                continue
            lanes = active[operator.name]
            fullest = max(len(book.queue(LaneId(operator.name, lane))) for lane in lanes)
            free = max(0, settings.q_size - fullest)
            even = all(edge.grouping.kind in ("shuffle", "none") for edge in graph.edges_into(operator.name))
            # Where keys choose the lane they may all choose the fullest one.
            self._free[operator.name] = free, len(lanes) if even else 1
        heads = [source.name for source in graph.sources] + [operator.name for operator in graph.served]
        for head in heads:
            senders = 1
            if head in active:
                senders = max(1, sum(1 for lane in book.lanes if lane.operator == head and len(book.lanes[lane])))
            for edge in graph.edges_leaving(head):
                self._senders[edge.target] = self._senders.get(edge.target, 0) + senders

    def for_sender(self, head: str) -> int:
        """The most tuples that one task of this chain may take."""
        room = MOST_ROWS
        for edge in self._graph.edges_leaving(head):
            if edge.target in self._free:
                free, lanes = self._free[edge.target]
                # A lane's part of what one sender gives is a whole number of tuples, the same for all lanes.
                share = free // self._senders[edge.target] * lanes
                room = min(room, int(share / max(1.0, self._estimates.fan_out.get(head, 1.0))))
        return max(0, room)
