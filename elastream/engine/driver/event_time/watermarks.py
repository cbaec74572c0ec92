"""Watermarks of operators with event times: the least of what all inputs, their parts and their lanes may still send.

Event times are measured where they begin: per part of a source, or at the operator that makes the column. From there they pass
every operator behind the rows that wait in front of it. The watermark of an operator is what has passed its own lanes, less its
lateness. It never goes back, and it is in the ledger.
"""

from collections.abc import Callable, Iterable

from elastream.engine.driver.event_time.progress import INFINITY, Barrier, LaneStops, Made, Passing, Progress, least
from elastream.engine.driver.event_time.source_times import HasUnread, SourceClock, SourceTimes
from elastream.engine.event_times import begins_at, origin_name, sources_before, tracked_operators
from elastream.engine.messages import LaneReceipt
from elastream.lanes.state import LedgerState
from elastream.topology import Graph, Kind, Operator
from elastream.topology.operators import KeyedState
from elastream.workload.replay import Replay

GivenFrom = Callable[[str], float]
"""Of an operator with timers: the earliest event time of what they may still give."""


class _Mark:
    """The watermark of one operator, before its lateness."""

    def __init__(self, inputs: Iterable[Progress], barrier: Barrier, clock: Progress | None, idle_s: float) -> None:
        """`clock`: given if an operator on the way may change event times; then the newest served one is a bound, too."""
        self._inputs = tuple(inputs)
        self.barrier = barrier
        self._clock = clock
        self._idle_s = idle_s
        self._input = self._newest = -INFINITY
        self._heard_s: float | None = None

    def hear(self, at_s: float, now: float) -> None:
        self._newest, self._heard_s = max(self._newest, at_s), now

    def advance(self, now: float) -> float:
        if self._heard_s is None:
            self._heard_s = now
        value = least(self._inputs)
        if value == INFINITY:
            # All inputs are silent or have ended. The slowest may begin again where it was.
            value = self._input
        self._input = value
        if self._clock is not None and self._clock.value - self._heard_s <= self._idle_s:
            value = min(value, self._newest)
        self.barrier.offer(value)
        return self.barrier.value


class Watermarks:
    """All watermarks of a run. In the tick's thread."""

    def __init__(
        self, graph: Graph, state: LedgerState, timed: Iterable[str], given_from: GivenFrom, has_unread: HasUnread
    ) -> None:
        """`timed`: operators with timers."""
        self._graph = graph
        self._state = state
        self._timed = frozenset(timed)
        self._tracked = tracked_operators(graph)
        self._given_from = given_from
        self._has_unread = has_unread
        self.lateness_s: dict[str, float] = {}
        self._steps: dict[tuple[str, str, float], Progress] = {}
        """By operator, column and `idle_s`; clocks have no column. Each stands behind those that it depends on."""
        self._order: list[Progress | str] = []
        """Steps, and the operators whose watermarks come between them."""
        self._marks: dict[str, _Mark] = {}
        self._listeners: dict[tuple[str, str], list[SourceTimes | Made]] = {}
        self._sources: dict[str, bool] = {s.name: isinstance(s.source, Replay) for s in graph.sources}
        """True for replays; the others are read by Spark, all in one batch."""
        self._readers: dict[str, list[SourceTimes | SourceClock]] = {name: [] for name in self._sources}
        self._expecting: dict[str, list[Made]] = {name: [] for name in self._sources}
        self._barriers: dict[str, list[Barrier]] = {}
        self._lanes: dict[str, LaneStops] = {}
        for operator in graph.operators:
            if operator.keyed is not None and operator.keyed.event_time is not None:
                self._add_mark(operator, operator.keyed, operator.keyed.event_time)

    def __bool__(self) -> bool:
        return bool(self._marks)

    def hear(self, receipts: Iterable[LaneReceipt], now: float) -> None:
        """Receipts of works that are done."""
        for receipt in receipts:
            if receipt.event_s is not None and receipt.operator in self._marks:
                self._marks[receipt.operator].hear(receipt.event_s, now)
            for (column, origin), at_s in receipt.events.items():
                for step in self._listeners.get((receipt.operator, column), ()):
                    step.hear(origin, at_s, now)
            if receipt.operator in self._sources:
                self._hear_source(receipt, now)

    def advance(self, now: float, wall_s: float) -> dict[str, float]:
        """The watermarks that move, now that all receipts are applied; they are in the state already."""
        for lanes in self._lanes.values():
            lanes.new_turn()
        moved: dict[str, float] = {}
        for step in self._order:
            if not isinstance(step, str):
                step.advance(now, wall_s)
                continue
            at_s = self._marks[step].advance(now) - self.lateness_s[step]
            if at_s > self._state.watermarks.get(step, -INFINITY):
                moved[step] = self._state.watermarks[step] = at_s
        return moved

    def rows_moved(self, operator: str) -> None:
        """Key groups of an operator have changed lanes, with the rows that waited."""
        if operator in self._lanes:
            self._lanes[operator].new_turn()
        for barrier in self._barriers.get(operator, ()):
            barrier.rows_moved()

    def _hear_source(self, receipt: LaneReceipt, now: float) -> None:
        for step in self._expecting[receipt.operator]:
            step.expect(receipt.origin, now)
        replay = self._sources[receipt.operator]
        for name in (receipt.operator,) if replay else [name for name, other in self._sources.items() if not other]:
            for reader in self._readers[name]:
                reader.was_read(now)

    # -- the steps, when a run begins

    def _add_mark(self, operator: Operator, keyed: KeyedState, column: str) -> None:
        name, idle_s = operator.name, keyed.idle_s
        before = self._before(name)
        inputs = [self._step(source, column, idle_s) for source in before]
        clock = None
        if any(self._may_change(source, column) for source in before):
            clock = self._clock(name)
        self.lateness_s[name] = keyed.lateness_s
        self._marks[name] = _Mark(inputs, self._barrier(name), clock, idle_s)
        self._order.append(name)

    def _step(self, name: str, column: str, idle_s: float) -> Progress:
        """How far the event times of a column have left an operator."""
        key = name, column, idle_s
        if key not in self._steps:
            step = self._made(name, column, idle_s) if begins_at(self._graph, name, column) else None
            self._steps[key] = step = step or self._passing(name, column, idle_s)
            self._order.append(step)
        return self._steps[key]

    def _passing(self, name: str, column: str, idle_s: float) -> Passing:
        inputs = [self._step(before, column, idle_s) for before in self._before(name)]
        barrier = None if self._graph[name].chained else self._barrier(name)
        return Passing(inputs, barrier, self._bound(name))

    def _made(self, name: str, column: str, idle_s: float) -> Progress:
        """Where the event times of a column begin."""
        head = self._head(name)
        step: SourceTimes | Made
        if head.kind is Kind.SOURCE:
            total = head.source.arrivals.total if isinstance(head.source, Replay) else None
            step = SourceTimes(self._state, head.name, total, idle_s, self._has_unread)
            self._readers[head.name].append(step)
        else:
            sources = sources_before(self._graph, name) if head.name in self._tracked else set[str]()
            origins = [origin_name(source, "") for source in sorted(sources)]
            step = Made(self._clock(head.name), idle_s, self._timers(name), origins or [""])
            for source in sources:
                self._expecting[source].append(step)
        self._listeners.setdefault((name, column), []).append(step)
        return step

    def _timers(self, name: str) -> Progress | None:
        """What timers of an operator, and of those before it, may still give; None if none of them has any."""
        key = name, "", -1.0
        if key not in self._steps:
            inputs = [step for before in self._before(name) if (step := self._timers(before)) is not None]
            if not inputs and name not in self._timed:
                return None
            barrier = None if self._graph[name].chained else self._barrier(name)
            self._steps[key] = step = Passing(inputs, barrier, self._bound(name))
            self._order.append(step)
        return self._steps[key]

    def _before(self, name: str) -> list[str]:
        return [edge.source for edge in self._graph.edges_into(name)]

    def _clock(self, name: str) -> Progress:
        """When the rows entered that an operator has served."""
        key = name, "", 0.0
        if key not in self._steps:
            clock: Progress
            if self._graph[name].kind is Kind.SOURCE:
                clock = SourceClock(self._state, name, self._has_unread)
                self._readers[name].append(clock)
            else:
                inputs = [self._clock(before) for before in self._before(name)]
                clock = Passing(inputs, None if self._graph[name].chained else self._barrier(name))
            self._steps[key] = clock
            self._order.append(clock)
        return self._steps[key]

    def _barrier(self, name: str) -> Barrier:
        barrier = Barrier(self._lanes.setdefault(name, LaneStops(self._state, name)))
        self._barriers.setdefault(name, []).append(barrier)
        return barrier

    def _bound(self, name: str) -> Callable[[], float] | None:
        return (lambda: self._given_from(name)) if name in self._timed else None

    def _head(self, name: str) -> Operator:
        """The operator in whose works this one runs."""
        operator = self._graph[name]
        while operator.chained:
            operator = self._graph[self._before(operator.name)[0]]
        return operator

    def _may_change(self, name: str, column: str) -> bool:
        """True if an operator between the beginning of event times and here may change them: any but a filter."""
        if begins_at(self._graph, name, column):
            return False
        if self._graph[name].kind is not Kind.FILTER:
            return True
        return any(self._may_change(before, column) for before in self._before(name))
