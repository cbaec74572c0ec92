"""Timers of keyed operators: which lanes have keys to be woken, by the clock or by the watermark.

How watermarks move is in `watermarks.py`. At the end of the stream, when nothing more can come, a watermark is infinite: then
all keys that wait for events are woken.
"""

import math
from collections.abc import Iterable, Sequence

from elastream.engine.driver.event_time.source_times import HasUnread
from elastream.engine.driver.event_time.watermarks import Watermarks
from elastream.engine.messages import LaneReceipt
from elastream.lanes.segments import LaneId
from elastream.lanes.state import LedgerState
from elastream.topology import Graph, Operator

_LATEST = 1e300
"""A time that comes before infinity, which is never."""


class LaneTimers:
    """Of a run. In the tick's thread."""

    def __init__(self, graph: Graph, state: LedgerState, has_unread: HasUnread) -> None:
        self._state = state
        keyed = [operator for operator in graph.operators if operator.keyed is not None]
        self._timed = {o.name: o for o in keyed if o.keyed is not None and o.keyed.on_timer is not None}
        self._watermarks = Watermarks(graph, state, self._timed, self._given_from, has_unread)
        self._before: dict[str, frozenset[str]] = {o.name: _before(graph, o) for o in keyed}
        self._next: dict[LaneId, tuple[float, float]] = {}
        """When a key of a lane is to be woken, by the clock and by the watermark. Lanes that are not in it must be asked."""
        self._looked_through: dict[LaneId, tuple[int, ...]] = {}
        """The key groups that the newest work of a lane looks through."""
        self._ended: set[str] = set()
        """Operators in front of which nothing can come any more."""

    def __bool__(self) -> bool:
        return bool(self._timed or self._watermarks)

    def told(self, operator: str) -> float | None:
        """The watermark, for a work; None when it is not known yet."""
        found = self.watermark_s(operator)
        return None if found == -math.inf else found

    def watermark_s(self, operator: str) -> float:
        return math.inf if operator in self._ended else self._state.watermarks.get(operator, -math.inf)

    def groups_of(self, lane: LaneId) -> tuple[int, ...]:
        """The key groups that a work of a lane shall look through for keys to be woken."""
        if lane.operator not in self._timed:
            return ()
        return tuple(group for group, owner in enumerate(self._state.owners[lane.operator]) if owner == lane.lane)

    def groups_for_work(self, lane: LaneId) -> tuple[int, ...]:
        """The same for a work that is about to be sent: its receipt is true as long as the lane owns just these."""
        groups = self.groups_of(lane)
        if groups:
            self._looked_through[lane] = groups
        return groups

    def hear(self, receipts: Sequence[LaneReceipt], now: float) -> None:
        """Receipts of works that are done."""
        self._watermarks.hear(receipts, now)
        for receipt in receipts:
            lane = LaneId(receipt.operator, receipt.lane)
            if lane.operator not in self._timed:
                continue
            # A lane that has got groups since the work was sent must be asked for their timers, too; and one whose work the
            # clock has ended did not say which timers its tuples have set.
            if receipt.timers is None or self._looked_through.get(lane) != self.groups_of(lane):
                self.ask(lane)
                continue
            clock_s, event_s = receipt.timers
            self._next[lane] = math.inf if clock_s is None else clock_s, math.inf if event_s is None else event_s

    def advance(self, now: float, wall_s: float) -> dict[str, float]:
        """The watermarks that move, now that all receipts are applied."""
        return self._watermarks.advance(now, wall_s)

    def groups_moved(self, operator: str, lanes: Iterable[int]) -> None:
        """Key groups of these lanes have changed hands, and what waits with them: they must be asked for their timers again."""
        for number in lanes:
            self.ask(LaneId(operator, number))
        self._watermarks.rows_moved(operator)

    def due(self, wall_s: float) -> list[LaneId]:
        """Lanes that have keys to be woken, or must be asked."""
        found = []
        for operator in self._timed:
            if self._state.logs[operator].is_empty:
                continue
            watermark_s = self.watermark_s(operator)
            lanes = [LaneId(operator, number) for number in set(self._state.owners[operator])]
            found += [lane for lane in lanes if self.is_due(lane, wall_s, watermark_s)]
        return found

    def is_due(self, lane: LaneId, wall_s: float, watermark_s: float | None) -> bool:
        """True when keys of a lane are to be woken by then, or the lane must be asked."""
        clock_s, event_s = self._next.get(lane, (-math.inf, -math.inf))
        return clock_s <= wall_s or (watermark_s is not None and event_s <= min(watermark_s, _LATEST))

    def ask(self, lane: LaneId) -> None:
        """Have a lane say again when its keys are to be woken."""
        self._next.pop(lane, None)

    def next_s(self) -> float:
        """When the clock next wakes a key."""
        return min((clock_s for clock_s, _ in self._next.values()), default=math.inf)

    def end(self) -> bool:
        """At the end of the stream, when nothing waits in any lane: True when no key waits for an event either.

        Those that do are woken, from the first operators to the last, for what they give may wait again behind them.
        """
        waiting = [operator for operator in self._timed if self._waits(operator)]
        for operator in waiting:
            if self._before[operator].isdisjoint(waiting):
                self._ended.add(operator)
        return not waiting

    def _waits(self, operator: str) -> bool:
        if self._state.logs[operator].is_empty:
            return False
        lanes = [LaneId(operator, number) for number in set(self._state.owners[operator])]
        return any(self._next.get(lane, (-math.inf, -math.inf))[1] < math.inf for lane in lanes)

    def _given_from(self, operator: str) -> float:
        """The earliest event time of what the timers of an operator may still give."""
        if self._state.logs[operator].is_empty:
            # It remembers nothing, but may of what waits for it: others that got the same tuples may be quicker.
            waits = operator in self._watermarks.lateness_s and self._state.queued(operator)
            return self.watermark_s(operator) if waits else math.inf
        lanes = [LaneId(operator, number) for number in set(self._state.owners[operator])]
        next_s = min(self._next.get(lane, (-math.inf, -math.inf))[1] for lane in lanes)
        return min(next_s, self.watermark_s(operator)) if operator in self._watermarks.lateness_s else next_s


def _before(graph: Graph, operator: Operator) -> frozenset[str]:
    """All operators from which tuples come to this one."""
    found: set[str] = set()
    left = [edge.source for edge in graph.edges_into(operator.name)]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [edge.source for edge in graph.edges_into(name)]
    return frozenset(found)
