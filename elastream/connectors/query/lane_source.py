"""The lane source: for one dataframe operator Spark asks it for the next batch, and gets the tasks that read its lanes.

Which those are is an offer: the ledger says what is given, then the driver leaves it in a local file, where Spark's planner
process, on the same machine, finds it. Rows are work, as JSON; what is read of a lane is known to `dataframe_ends`, which can
report it.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa

WORK_SCHEMA = "work string"
FILE = "offer.json"


class Offer(msgspec.Struct, frozen=True):
    """What Spark's planner process may read next. An offer's number is Spark's offset."""

    offer: int
    lanes: dict[str, list[str]]
    """Per dataframe operator, the works of the tasks that read its lanes."""
    again_offer: int = -1
    again: dict[str, list[str]] = {}
    """The same of the offer before, for a batch that Spark repeats although the ledger has it."""

    def leave_in(self, folder: str) -> None:
        path = Path(folder) / FILE
        new = path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(self))
        os.replace(new, path)


def lane_source(name: str, folder: str) -> type[DataSource]:
    """A data source class of its own for each run; the option `operator` says whose lanes are meant.

    Planner processes know only what is imported in the methods they call, so that none of them loads the engine: each would
    take a second for it.
    """

    class LaneReader(DataSourceStreamReader):
        def __init__(self, operator: str) -> None:
            self._operator = operator

        def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
            return {"offer": -1}

        def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
            return {"offer": max(start["offer"], self._read()["offer"])}

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            found = self._read()
            works = []
            if end["offer"] == found["again_offer"]:
                works = found["again"].get(self._operator, [])
            elif end["offer"] == found["offer"]:
                works = found["lanes"].get(self._operator, [])
            return [InputPartition(work) for work in works] or [InputPartition(None)]

        def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
            if partition.value is not None:
                import pyarrow as pa

                yield pa.record_batch([pa.array([partition.value])], names=["work"])

        def commit(self, end: dict[str, int]) -> None:
            """The ledger is the only record of what is done."""

        def _read(self) -> Any:
            with open(f"{folder}/{FILE}", encoding="utf-8") as file:
                return json.load(file)

    class LaneSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return WORK_SCHEMA

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return LaneReader(self.options["operator"])

    return LaneSource
