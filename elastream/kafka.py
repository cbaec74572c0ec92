"""Read what a Kafka sink wrote, each record once: records enter in the order of their partition, repeats do not leave.

A record's header `elastream` names it: run, tick, task, sequence. All records of a tick are in the topic before the next tick
begins, so a record of an older tick than the newest seen is a repeat, and of the newest tick it is enough to remember which
sequence numbers were there. That is all the memory it takes: for each partition and run, a bit for each record of one tick.

Anybody who may write to a topic can write such a header, so there are bounds to what is remembered. A header beyond them is
no name: its record is always new.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

HEADER = "elastream"

PATTERN = "([^/]{1,64})/([0-9]{1,15})/([^/]+)/([0-4]?[0-9]{1,5})/(-?[0-9]{1,18})"
"""What a sink of ours writes there. A task writes at most 500,000 records: see `rules.MOST_ROWS`."""

MOST_RUNS = 16
"""In a partition, only so many are remembered: those that wrote last."""

MOST_BYTES = 1 << 20
"""What is remembered of a tick at most: the names of its tasks, and bits for eight million records."""

_HEADER_SQL = f"cast(try_element_at(filter(headers, h -> h.key = '{HEADER}'), -1).value as string)"
NAME_SQL = f"regexp_substr({_HEADER_SQL}, '^{PATTERN}$')"
TIME_SQL = "coalesce(timestamp_micros(cast(substring_index(_name, '/', -1) as bigint)), timestamp)"
"""A record's name, from its headers; and its time, from its name if it has one."""


class RecordName(NamedTuple):
    """What the header says."""

    run: str
    tick: int
    task: str
    sequence: int
    time_us: int
    """The time of the tuple, in microseconds since 1970."""

    @classmethod
    def parse(cls, header: bytes | str) -> RecordName | None:
        """None when it is none of ours."""
        text = header.decode(errors="replace") if isinstance(header, bytes) else header
        found = re.fullmatch(PATTERN, text)
        if found is None:
            return None
        run, tick, task, sequence, time_us = found.groups()
        return cls(run, int(tick), task, int(sequence), int(time_us))


def name_of(headers: Iterable[Any] | None) -> RecordName | None:
    """The name among a record's headers, given as (key, value) pairs; None when no sink of ours wrote it."""
    found = [value for key, value in headers or () if key == HEADER]
    return RecordName.parse(found[-1]) if found else None


class Once:
    """Says of every record whether it is new. Give it all records of a partition, in order.

    What it knows can be kept as JSON beside the reader's offsets, and given back when it starts again.
    """

    def __init__(self, known: dict[str, Any] | None = None) -> None:
        self._places: dict[str, dict[str, _Run]] = {}
        """By topic/partition, the runs that wrote there, the last one last."""
        self._changed: set[str] = set()
        for place, its in (known or {}).items():
            if isinstance(its, list):
                # Kept as partition/run, by a reader that did not know of topics.
                partition, run = place.split("/")
                self._places.setdefault(f"/{partition}", {})[run] = _Run.from_json(its, unpack=bytes)
            else:
                self._places[place] = {run: _Run.from_json(document) for run, document in its.items()}

    def is_new(self, topic: str, partition: int, name: RecordName | None) -> bool:
        """True once for each name; always for records without one."""
        return name is None or self._is_new(f"{topic}/{partition}", name)

    def are_new(self, places: Iterable[str], names: Iterable[str | None]) -> list[bool]:
        """The same for many: places are topic/partition, names the text of the headers."""
        parsed = (None if name is None else RecordName.parse(name) for name in names)
        return [name is None or self._is_new(place, name) for place, name in zip(places, parsed, strict=True)]

    def _is_new(self, place: str, name: RecordName) -> bool:
        self._changed.add(place)
        runs = self._places.get(place)
        if runs is None:
            runs = self._places[place] = dict(self._places.get(place[place.index("/") :], {}))
        run = runs.pop(name.run, None)
        if run is None or name.tick > run.tick:
            run = _Run(name.tick, {})
        runs[name.run] = run
        if len(runs) > MOST_RUNS:
            del runs[next(iter(runs))]
        return name.tick == run.tick and run.add(name.task, name.sequence)

    def to_json(self) -> dict[str, Any]:
        return {place: self._runs_to_json(place) for place in self._places}

    def news(self) -> dict[str, Any]:
        """Of what it knows, only the partitions of which it was asked."""
        return {place: self._runs_to_json(place) for place in sorted(self._changed)}

    def _runs_to_json(self, place: str) -> dict[str, Any]:
        return {name: run.to_json() for name, run in self._places[place].items()}


class _Run:
    """The newest tick of a run in a partition, and which of its records were seen, a bit each."""

    def __init__(self, tick: int, seen: dict[str, bytearray]) -> None:
        self.tick = tick
        self._seen = seen
        self._bytes = sum(len(task) + len(bits) for task, bits in seen.items())

    def add(self, task: str, sequence: int) -> bool:
        byte, bit = sequence >> 3, 1 << (sequence & 7)
        bits = self._seen.get(task, bytearray())
        missing = byte + 1 - len(bits)
        if missing > 0:
            more = missing + (0 if bits else len(task))
            if self._bytes + more > MOST_BYTES:
                return True
            self._bytes += more
            bits.extend(bytes(missing))
            self._seen[task] = bits
        if bits[byte] & bit:
            return False
        bits[byte] |= bit
        return True

    def to_json(self) -> list[Any]:
        # Packed: one record with a high number has nothing but zeros before it.
        return [self.tick, {task: base64.b64encode(zlib.compress(bits)).decode() for task, bits in self._seen.items()}]

    @classmethod
    def from_json(cls, document: list[Any], unpack: Callable[[bytes], bytes] = zlib.decompress) -> _Run:
        tick, seen = document
        return cls(tick, {task: bytearray(unpack(base64.b64decode(bits))) for task, bits in seen.items()})


def once(frame: DataFrame) -> DataFrame:
    """The rows of `spark.read` or `spark.readStream` of a topic, with `includeHeaders`, each once, and with their own time.

    A stream is grouped by partition, in which rows come in order; its state is what `Once` remembers. It takes as many tasks
    as `spark.sql.shuffle.partitions` says when it starts: as many as the topic has partitions are enough.
    """
    from pyspark.errors import PySparkValueError
    from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

    if "headers" not in frame.columns:
        raise PySparkValueError("once: expected a column 'headers'; read the topic with option('includeHeaders', True)")
    named = frame.withColumn("_name", F.expr(NAME_SQL))
    if frame.isStreaming:
        apart = named.groupBy("topic", "partition").applyInPandasWithState(
            _new_rows, named.schema, "known string", "append", "NoTimeout"
        )
    else:
        which = F.concat_ws("/", "topic", F.coalesce("_name", F.concat_ws("/", "partition", "offset")))
        tasks = frame.sparkSession.sparkContext.defaultParallelism
        rows = named.withColumn("_which", which).repartition(tasks, "_which")
        apart = rows.dropDuplicates(["_which"]).drop("_which")
    return apart.withColumn("timestamp", F.expr(TIME_SQL)).drop("_name")


def _new_rows(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """Of one partition. Spark gives the rows of a group in any order, so they are put back into theirs."""
    import json

    import pandas as pd

    rows = pd.concat(frames).sort_values("offset")
    seen = Once(json.loads(state.get[0])) if state.exists else Once()
    topic, partition = key
    new = seen.are_new([f"{topic}/{partition}"] * len(rows), rows["_name"])
    state.update((json.dumps(seen.to_json()),))
    yield rows[new]
