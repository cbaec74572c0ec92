"""How far Spark has read the streaming sources: what they begin with and what Spark reports enter; lag and end leave."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from elastream.connectors.spark_source import Progress, SparkSource, State
from elastream.errors import SettingError
from elastream.lanes import LedgerState
from elastream.topology import Graph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SourceProgress:
    """The streaming sources of one run. Spark reports a batch when it is over, so the newest report is of the one before."""

    def __init__(self, graph: Graph) -> None:
        self._streams: dict[str, SparkSource] = {
            s.name: s.source for s in graph.sources if isinstance(s.source, SparkSource)
        }
        self.states: dict[str, State] = {}
        """What the ledger shall keep of each source, from its beginning on."""
        self._places: dict[str, int] = {}
        """Where each source is in Spark's list."""
        self._reported: tuple[int, dict[str, Progress]] = (-1, {})
        """The newest report: the number of its batch, and what it says of each source."""
        self._brought: dict[int, dict[str, int]] = {}
        """Per batch that was committed after the report, how many tuples of each source it brought."""

    def __bool__(self) -> bool:
        return bool(self._streams)

    def frames(self, spark: SparkSession, state: LedgerState) -> dict[str, DataFrame]:
        """Open every source, where the ledger says it was. They come first in the query, in this order.

        When a query is started again within a run, its sources have begun: a broker that is away then need not answer.
        """
        frames = {}
        place = 0
        for name, stream in self._streams.items():
            if name not in self.states:
                self.states[name] = stream.begin(spark, name, dict(state.sources.get(name, {})))
            frames[name] = stream.frame(spark, self.states[name])
            self._places[name] = place
            place += _sources_in(frames[name])
        return frames

    def hear(self, report: str | None) -> None:
        """Take in Spark's newest report, as JSON."""
        document: dict[str, Any] = json.loads(report) if report else {"sources": [], "batchId": -1}
        sources: list[Progress] = document["sources"]
        # One assignment: the tick's thread may be looking.
        self._reported = (
            document["batchId"],
            {name: sources[place] for name, place in self._places.items() if place < len(sources)},
        )

    def add(self, batch: int, read: dict[str, int]) -> None:
        """A batch has been committed: tuples per source. In the tick's thread."""
        reported, _ = self._reported
        self._brought = {number: rows for number, rows in self._brought.items() if number > reported} | {batch: read}

    def states_after(self, state: LedgerState, query: str) -> dict[str, dict[str, Any]]:
        """As the ledger shall have them after a batch; those that it changes."""
        states: dict[str, dict[str, Any]] = {}
        for name in self._streams:
            old = state.sources.get(name)
            new = {**self.states[name], "query": query} if old is None else dict(old)
            if self.is_over(name):
                new["over"] = True
            if new != old:
                states[name] = new
        return states

    def ended(self, state: LedgerState) -> dict[str, dict[str, Any]]:
        """The sources that are over and of which the ledger does not say so yet."""
        return {
            name: {**known, "over": True}
            for name in self._streams
            if (known := state.sources.get(name)) is not None and not known.get("over") and self.is_over(name)
        }

    def check_checkpoint(self, state: LedgerState, query: str, base: str) -> None:
        """A streaming DataFrame's offsets are in one checkpoint; with another one its tuples would come again."""
        for name in self._streams:
            if state.sources.get(name, {}).get("query", query) != query:
                raise SettingError(
                    f"source {name!r}: base {base} was written with another checkpoint of Spark's, which has "
                    "the source's offsets; give that one back, or begin with a new base"
                )

    def all_over(self, state: LedgerState) -> bool:
        """True when nothing will come any more; most streaming DataFrames never say so."""
        return all(state.sources.get(name, {}).get("over") for name in self._streams)

    def is_over(self, source: str) -> bool:
        _, heard = self._reported
        return source in heard and self._streams[source].is_over(self.states[source], heard[source])

    def lag(self) -> dict[str, dict[str, int]]:
        """Per source and part of it, what was there and not read when Spark last reported."""
        return self._lag(self._reported[1])

    def unread(self) -> dict[str, int]:
        """Per source, all parts together, less what has come in since."""
        (reported, heard), brought = self._reported, self._brought
        since = [rows for number, rows in brought.items() if number > reported]
        return {
            name: max(0, sum(parts.values()) - sum(rows.get(name, 0) for rows in since))
            for name, parts in self._lag(heard).items()
        }

    def _lag(self, heard: dict[str, Progress]) -> dict[str, dict[str, int]]:
        return {
            name: stream.lag(self.states[name], heard[name]) for name, stream in self._streams.items() if name in heard
        }


def _sources_in(frame: DataFrame) -> int:
    """How many streaming sources a DataFrame is made of."""
    leaves: Any = frame._jdf.queryExecution().analyzed().collectLeaves()
    return sum(bool(leaves.apply(number).isStreaming()) for number in range(leaves.size()))
