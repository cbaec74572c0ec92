"""The flow that chaos is made with: numbers from a replay and from files, through operators and Spark's state, to a sink.

Every number must arrive once. A number may be poison: then it must be in the dead letters.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from elastream.engine.edges import sources
from elastream.engine.worker.delivery import Delivery
from elastream.topology import Topology, groupings, parse_schema
from elastream.workload import constant
from elastream.workload.replay import Replay

FIRST_OF_FILES = 1_000_000_000
"""Numbers that files bring begin here; those below are replayed."""

SCHEMA = "id long, poison string"


def chaos_flow(folder: Path, per_second: float, seconds: float, *, edges: bool) -> Topology:
    """`edges`: with a source and an operator that Spark serves."""
    flow = Topology("chaos")
    flow.source("replay", Replay(constant(per_second, seconds), parse_schema(SCHEMA), _harmless), replicas=2)
    before = ["replay"]
    if edges:
        flow.source("files", sources.json(str(folder / "in"), SCHEMA, files_per_tick=4))
        before.append("files")
    flow.map("work", swallow, after=before, replicas=(1, 4), start=2)
    flow.map("pass", same, after="work", grouping=groupings.fields("id"), replicas=3)
    flow.sink("end", files_by_delivery(folder / "sink"), after="pass", replicas=2)
    if edges:
        flow.dataframe("tally", tally, after="pass", schema="digit long, count long", updates=True, replicas=2)
        flow.output("tallies", after="tally")
    return flow


def _harmless(numbers: Any) -> dict[str, Any]:
    return {"id": numbers, "poison": pa.nulls(len(numbers), pa.string())}


def swallow(row: dict[str, Any]) -> dict[str, Any]:
    match row["poison"]:
        case "raises":
            raise ValueError("poison")
        case "ends its process":
            os._exit(9)
        case "never returns":
            time.sleep(3600)
    return row


def same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def tally(frame: DataFrame) -> DataFrame:
    return frame.groupBy((frame.id % 10).alias("digit")).count()


def files_by_delivery(folder: Path) -> Callable[[pa.RecordBatch, Delivery], None]:
    """A sink that remembers deliveries: the same one replaces its own file."""

    def write(batch: pa.RecordBatch, delivery: Delivery) -> None:
        new = folder / f"{delivery.id}.new"
        new.write_text(" ".join(map(str, batch.column("id").to_pylist())))
        new.rename(folder / f"{delivery.id}.ids")

    return write


class Feeder:
    """Writes files for the flow to read, and remembers what must become of their numbers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = FIRST_OF_FILES
        self.poisoned: set[int] = set()
        (folder / "in").mkdir()

    @property
    def numbers(self) -> range:
        return range(FIRST_OF_FILES, self._next)

    def write(self, rows: int, poison: str | None = None) -> None:
        numbers = range(self._next, self._next + rows)
        self._next += rows
        if poison is not None:
            self.poisoned.add(numbers[rows // 2])
        lines = [json.dumps({"id": n, "poison": poison if n in self.poisoned else None}) + "\n" for n in numbers]
        new = self._folder / f"{self._next}.new"
        new.write_text("".join(lines))
        new.rename(self._folder / "in" / f"{self._next}.json")


class Arrived:
    """The numbers at the sink. Reading goes on where it was, for there are many files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, str] = {}
        self.times: Counter[int] = Counter()
        folder.mkdir()

    def look(self) -> int:
        """How many there are now."""
        for name in os.listdir(self._folder):
            if name.endswith(".ids") and name not in self._seen:
                text = self._seen[name] = (self._folder / name).read_text()
                self.times.update(map(int, text.split()))
        return len(self.times)

    @property
    def doubled(self) -> int:
        return sum(times - 1 for times in self.times.values())

    def changed(self) -> int:
        """Deliveries that came again under their name with other rows."""
        return sum((self._folder / name).read_text() != text for name, text in self._seen.items())
