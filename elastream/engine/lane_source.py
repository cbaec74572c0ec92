"""The lane source: for one dataframe operator Spark asks it for the next batch, and gets the tasks that read its lanes.

It moves with the tick source: both look into the same mailbox, so that a tick's branches are in one batch. Rows are work, as
JSON; what is read of a lane is known to `frame_task`, which can report it.
"""

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from elastream.engine.tick_source import PLAN_FILE

if TYPE_CHECKING:
    import pyarrow as pa

WORK_SCHEMA = "work string"


def lane_source(name: str, mailbox: str) -> type[DataSource]:
    """A data source class of its own for each run; the option `operator` says whose lanes are meant."""

    class LaneReader(DataSourceStreamReader):
        def __init__(self, operator: str) -> None:
            self._operator = operator

        def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
            return {"entry": -1}

        def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
            mail = self._mail()
            new = mail["entry"] > start["entry"] and self._operator in mail["lanes"]
            return {"entry": mail["entry"]} if new and time.time() >= mail["not_before_s"] else start

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            mail = self._mail()
            tasks = []
            if end["entry"] == mail["entry"]:
                tasks = mail["lanes"].get(self._operator, [])
            elif end["entry"] == mail["again_entry"]:
                tasks = mail["again"].get(self._operator, [])
            return [InputPartition(task) for task in tasks] or [InputPartition(None)]

        def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
            if partition.value is not None:
                import pyarrow as pa

                yield pa.record_batch([pa.array([partition.value])], names=["work"])

        def commit(self, end: dict[str, int]) -> None:
            """The ledger is the only record of what is done."""

        def _mail(self) -> Any:
            with open(f"{mailbox}/{PLAN_FILE}", encoding="utf-8") as file:
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
