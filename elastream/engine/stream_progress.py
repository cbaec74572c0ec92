"""How far Spark has read the streaming sources: what they begin with and what Spark reports enter; lag and end leave."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from elastream.engine.settle import Settled
from elastream.engine.streams import Progress, State, Stream
from elastream.lanes import Book
from elastream.topology import Graph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StreamProgress:
    """Of one run. Spark reports a batch when it is over, so in a tick the newest report is of the one before."""

    def __init__(self, graph: Graph) -> None:
        self._streams: dict[str, Stream] = {s.name: s.source for s in graph.sources if isinstance(s.source, Stream)}
        self.states: dict[str, State] = {}
        """What the ledger shall keep of each source, from its beginning on."""
        self._places: dict[str, int] = {}
        """Where each source is in Spark's list."""
        self._heard: dict[str, Progress] = {}
        self._since: dict[str, int] = {}
        """What came in after the report."""

    def __bool__(self) -> bool:
        return bool(self._streams)

    def frames(self, spark: SparkSession, book: Book) -> dict[str, DataFrame]:
        """Open every source, where the book says it was.

        When a query is started again within a run, its sources have begun: a broker that is away then need not answer.
        """
        frames = {}
        # The tick source comes first in the query.
        place = 1
        for name, stream in self._streams.items():
            if name not in self.states:
                self.states[name] = stream.begin(spark, name, dict(book.sources.get(name, {})))
            frames[name] = stream.frame(spark, self.states[name])
            self._places[name] = place
            place += _sources_in(frames[name])
        return frames

    def hear(self, report: str | None) -> None:
        """Take in Spark's newest report, as JSON."""
        sources: list[Progress] = json.loads(report)["sources"] if report else []
        self._heard = {name: sources[place] for name, place in self._places.items() if place < len(sources)}

    def add(self, settled: Settled) -> None:
        """A tick has ended, of which Spark has not reported yet."""
        self._since = {name: int(settled.counts.get(name, {}).get("processed", 0)) for name in self._streams}

    def is_over(self, source: str) -> bool:
        return source in self._heard and self._streams[source].is_over(self.states[source], self._heard[source])

    def lag(self) -> dict[str, dict[str, int]]:
        """Per source and part of it, what was there and not read when Spark last reported."""
        return {
            name: stream.lag(self.states[name], self._heard[name])
            for name, stream in self._streams.items()
            if name in self._heard
        }

    def unread(self) -> dict[str, int]:
        """Per source, all parts together, less what has come in since."""
        return {name: max(0, sum(its.values()) - self._since.get(name, 0)) for name, its in self.lag().items()}


def _sources_in(frame: DataFrame) -> int:
    """How many streaming sources a DataFrame is made of."""
    leaves: Any = frame._jdf.queryExecution().analyzed().collectLeaves()
    return sum(bool(leaves.apply(number).isStreaming()) for number in range(leaves.size()))
