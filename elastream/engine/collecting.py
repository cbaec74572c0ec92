"""Sinks that collect before they write, so that files do not become small: when their time has come."""

from collections import Counter

from elastream.engine.room import MOST_ROWS
from elastream.engine.settings import Settings
from elastream.engine.source_states import exhausted
from elastream.lanes import Book, LaneId
from elastream.topology import Graph


def collecting_sinks(
    graph: Graph,
    settings: Settings,
    book: Book,
    waiting: dict[LaneId, int],
    wrote_s: dict[str, float],
    now_s: float,
) -> set[str]:
    """The sinks that wait for more before they write: their time has not come, no lane is half full, and more may come."""
    if exhausted(graph, book):
        return set()
    half = (settings.q_size or MOST_ROWS) // 2
    return {
        operator.name
        for operator in graph.served
        if operator.writer is not None
        and now_s - wrote_s.get(operator.name, 0.0) < operator.writer.every_s
        and all(rows < half for lane, rows in waiting.items() if lane.operator == operator.name)
    }


def emptied_sinks(
    graph: Graph, waiting: dict[LaneId, int], takes: list[tuple[str, int, int]], now_s: float
) -> dict[str, float]:
    """The sinks from which everything that waits is taken now."""
    left = Counter({lane: rows for lane, rows in waiting.items() if graph[lane.operator].writer is not None})
    taken = Counter({LaneId(operator, lane): rows for operator, lane, rows in takes if LaneId(operator, lane) in left})
    sinks = {lane.operator for lane in taken}
    return {name: now_s for name in sinks if not any(lane.operator == name for lane in left - taken)}
