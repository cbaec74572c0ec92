"""A stream in miniature for tests of watermarks: real graph, real ledger state, real watermarks; rows are plain numbers.

Sources give rows, lanes are served, key groups move, in any order that a test wants. Every row that reaches the window is
compared with its watermark.
"""

import math
import random
from collections import defaultdict, deque
from dataclasses import dataclass

from elastream import Topology, sources
from elastream.engine.driver.event_time.timers import LaneTimers
from elastream.engine.event_times import event_time_origins, origin_name, tracked_operators
from elastream.engine.messages import LaneReceipt
from elastream.lanes import LaneId, LedgerState
from elastream.lanes.entries import Entry
from elastream.lanes.segments import Appended, SchemaId, Slice
from elastream.topology import Graph
from elastream.workload import constant

LATENESS_S = 10.0
IDLE_S = 5.0
MADE_AT = "at timestamp, key long"


def replay(columns: str = MADE_AT) -> sources.Replay:
    return sources.replay(constant(1000, 1000), columns, lambda numbers: {})


def window(flow: Topology, *after: str, lateness_s: float = LATENESS_S) -> Graph:
    flow.key_by("key", after=list(after)).window(
        "w", time="at", every_s=60.0, lateness_s=lateness_s, aggregate={"n": "count()"}, replicas=(1, 4), start=2
    )
    flow.output("out", after="w")
    return flow.build()


@dataclass
class Row:
    at_s: float
    origin: str


class Stream:
    """A graph whose lanes are served by hand."""

    def __init__(self, graph: Graph, state: LedgerState | None = None) -> None:
        self.graph = graph
        self.state = state or LedgerState()
        self.rows: dict[LaneId, deque[Row]] = defaultdict(deque)
        self.now = 0.0
        self.unread: set[str] = set()
        self.late: list[Row] = []
        self.served: list[Row] = []
        self._at = event_time_origins(graph)
        self._tracked = tracked_operators(graph)
        for source in graph.sources:
            self.state.sources.setdefault(source.name, {"origin_s": 0.0, "next": 0, "open": []})
        self.timers = self._timers()
        self.turn([])

    def _timers(self) -> LaneTimers:
        return LaneTimers(self.graph, self.state, lambda source, part, wall_s: source in self.unread)

    @property
    def watermark_s(self) -> float:
        return self.timers.watermark_s("w")

    def restart(self) -> None:
        """A new driver: only the ledger is left."""
        self.state = LedgerState.restored(self.state.snapshot())
        self.timers = self._timers()

    def turn(self, receipts: list[LaneReceipt], entry: Entry | None = None, seconds: float = 0.01) -> None:
        self.now += seconds
        if entry is not None:
            self.state.apply(entry)
        self.timers.hear(receipts, self.now)
        self.timers.advance(self.now, self.now)

    def give(self, source: str, times: list[float], lanes: dict[str, list[int]], *, part: str = "") -> None:
        """Rows of a source enter; `lanes`: per target, the lane of each row."""
        origin = origin_name(source, part)
        known = self.state.sources[source]
        moved = {source: {**known, "next": known["next"] + len(times)}}
        receipt = LaneReceipt(
            source, 0, processed=len(times), origin=origin, events=self._events(source, times, origin)
        )
        rows = [Row(at_s, origin) for at_s in times]
        self.turn([receipt], self._entry([], self._put(source, rows, lanes), moved))

    def postpone(self, source: str, count: int) -> tuple[int, int]:
        """A range of a replay is given out that comes later than those behind it."""
        known = self.state.sources[source]
        span = known["next"], known["next"] + count
        moved = {source: {**known, "next": span[1], "open": [*known["open"], list(span)]}}
        self.turn([], self._entry([], [], moved))
        return span

    def give_postponed(
        self, source: str, span: tuple[int, int], times: list[float], lanes: dict[str, list[int]]
    ) -> None:
        origin = origin_name(source, "")
        known = self.state.sources[source]
        moved = {source: {**known, "open": [other for other in known["open"] if tuple(other) != span]}}
        receipt = LaneReceipt(
            source, 0, processed=len(times), origin=origin, events=self._events(source, times, origin)
        )
        rows = [Row(at_s, origin) for at_s in times]
        self.turn([receipt], self._entry([], self._put(source, rows, lanes), moved))

    def serve(self, lane: LaneId, count: int, lanes: dict[str, list[int]], kept: list[bool] | None = None) -> None:
        """An operator serves rows; `lanes`: per target, the lane of each row; `kept`: those that leave."""
        count = min(count, len(self.rows[lane]))
        if not count:
            return
        rows = [self.rows[lane].popleft() for _ in range(count)]
        receipt = LaneReceipt(lane.operator, lane.lane, consumed=count)
        appended: list[Appended] = []
        if lane.operator == "w":
            receipt.event_s = max(row.at_s for row in rows)
            self.late += [row for row in rows if row.at_s < self.watermark_s]
            self.served += rows
        else:
            left = [row for number, row in enumerate(rows) if kept is None or kept[number % len(kept)]]
            for origin in {row.origin if lane.operator in self._tracked else "" for row in left}:
                times = [row.at_s for row in left if origin in ("", row.origin)]
                receipt.events |= self._events(lane.operator, times, origin)
            appended = self._put(lane.operator, left, lanes)
        self.turn([receipt], self._entry([(*lane, count)], appended, {}))

    def serve_all(self, order: list[str]) -> None:
        """Serve what waits, operator after operator; rows go to lane 0 behind it."""
        for operator in [*order, "w"]:
            for lane in [lane for lane in list(self.rows) if lane.operator == operator]:
                self.serve(lane, len(self.rows[lane]), {edge.target: [0] for edge in self.graph.edges_from(operator)})

    def move(self, operator: str, giver: int, taker: int) -> None:
        """All that waits in a lane goes to the end of another, as key groups take it along."""
        queue, other = self.state.queue(LaneId(operator, giver)), self.state.queue(LaneId(operator, taker))
        for piece in queue.slices:
            other.append(piece)
        queue.appended = queue.consumed
        queue.slices.clear()
        self.rows[LaneId(operator, taker)].extend(self.rows.pop(LaneId(operator, giver), ()))
        self.timers.groups_moved(operator, {giver, taker})
        self.turn([])

    def _events(self, operator: str, times: list[float], origin: str) -> dict[tuple[str, str], float]:
        return {(column, origin): max(times) for column in self._at.get(operator, ()) if times}

    def _put(self, operator: str, rows: list[Row], lanes: dict[str, list[int]]) -> list[Appended]:
        appended = []
        for edge in self.graph.edges_from(operator):
            if edge.target == "out":
                continue
            numbers = lanes[edge.target]
            for place, row in enumerate(rows):
                lane = LaneId(edge.target, numbers[place % len(numbers)])
                self.rows[lane].append(row)
                appended.append(Appended(*lane, Slice("file", 0, 0, 0, SchemaId("x"), 0, 1)))
        return appended

    def _entry(
        self, consumed: list[tuple[str, int, int]], appended: list[Appended], moved: dict[str, dict[str, object]]
    ) -> Entry:
        return Entry(self.state.entry + 1, self.now, consumed, appended, sources=moved)


class Happening:
    """Event times of a source: in order, but for less than the lateness."""

    def __init__(self, chance: random.Random, began_s: float, disorder_s: float = LATENESS_S) -> None:
        self._chance = chance
        self.newest_s, self._next_s = -math.inf, began_s
        self._disorder_s = disorder_s

    def take(self, count: int) -> list[float]:
        times = []
        for _ in range(count):
            self._next_s += self._chance.uniform(0.0, 3.0)
            at_s = max(self._next_s - self._chance.uniform(0.0, self._disorder_s), self.newest_s - self._disorder_s)
            self.newest_s = max(self.newest_s, at_s)
            times.append(at_s)
        return times
