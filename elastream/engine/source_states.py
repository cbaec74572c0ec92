"""How far the sources have been read: the book enters, what is due, what is left and the states of the next entry leave."""

import math
from typing import Any

from elastream.engine.settle import Settled
from elastream.engine.sources import Replay, Stream
from elastream.engine.stream_progress import StreamProgress
from elastream.errors import SettingError
from elastream.lanes import Book
from elastream.topology import Graph


def states_after(
    graph: Graph, book: Book, settled: Settled, streams: StreamProgress, query: str, now_s: float
) -> dict[str, dict[str, Any]]:
    """Those that a tick changes. Replays begin when the first tick is over, so that starting up is not lateness."""
    states: dict[str, dict[str, Any]] = {}
    for source in graph.sources:
        old = book.sources.get(source.name)
        if isinstance(source.source, Stream):
            new = {**streams.states[source.name], "query": query} if old is None else dict(old)
            if streams.is_over(source.name):
                new["over"] = True
            if source.name in settled.memories:
                new["once"] = new.get("once", {}) | settled.memories[source.name]
            if new != old:
                states[source.name] = new
        elif isinstance(source.source, Replay):
            if old is None:
                states[source.name] = {"origin_s": now_s, "next": 0}
            elif source.name in settled.next_of:
                states[source.name] = {**old, "next": settled.next_of[source.name]}
    return states


def check_checkpoint(graph: Graph, book: Book, query: str, base: str) -> None:
    """A streaming DataFrame's offsets are in one checkpoint; with another one its tuples would come again."""
    for source in graph.sources:
        state = book.sources.get(source.name, {})
        if isinstance(source.source, Stream) and state.get("query", query) != query:
            raise SettingError(
                f"source {source.name!r}: base {base} was written with another checkpoint of Spark's, which has "
                "the source's offsets; give that one back, or begin with a new base"
            )


def next_due_s(graph: Graph, book: Book) -> float:
    """When the next tuple of a replay is due; never, when none is."""
    due_s = math.inf
    for source in graph.sources:
        state = book.sources[source.name]
        if isinstance(source.source, Replay) and state["next"] < source.source.arrivals.total:
            first = float(source.source.arrivals.due_times(state["next"], state["next"] + 1)[0])
            due_s = min(due_s, state["origin_s"] + first)
    return due_s


def exhausted(graph: Graph, book: Book) -> bool:
    """True when nothing will come any more; most streaming DataFrames never say so."""
    return all(_is_over(source.source, book.sources.get(source.name)) for source in graph.sources)


def _is_over(source: Any, state: dict[str, Any] | None) -> bool:
    if state is None:
        return False
    return bool(state["next"] >= source.arrivals.total if isinstance(source, Replay) else state.get("over"))


def unread(graph: Graph, book: Book) -> dict[str, int]:
    """Tuples that were due at the last entry and are not read yet."""
    left: dict[str, int] = {}
    for source in graph.sources:
        state = book.sources.get(source.name)
        if isinstance(source.source, Replay) and state is not None:
            due = source.source.arrivals.due_by(book.at_s - state["origin_s"])
            left[source.name] = max(0, due - state["next"])
    return left
