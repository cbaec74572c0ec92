"""The tick source: Spark asks it for the next batch, and gets the tasks of the next tick.

The driver leaves each plan in the mailbox, a local file, once the entry it belongs to is committed. Spark's planner
process, on the same machine, reads it there; workers run the tasks and give one receipt each.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa

RECEIPT_SCHEMA = "receipt string"
PLAN_FILE = "plan.json"


@dataclass(frozen=True)
class Mail:
    """What the planner process needs to know of the tick to come."""

    entry: int
    """The entry that holds the plan; Spark's offset for it."""
    not_before_s: float
    """When nothing waits, the tick comes only then."""
    tasks: tuple[str, ...]
    lanes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Per dataframe operator, the tasks that read its lanes."""
    again_entry: int = -1
    again: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The same of an entry before, for a batch that Spark repeats although the ledger has it."""


class Mailbox:
    """One file, replaced as a whole."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder) / PLAN_FILE

    def put(self, mail: Mail) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(vars(mail)), encoding="utf-8")
        os.replace(new, self._path)

    def get(self) -> Mail:
        document = json.loads(self._path.read_text(encoding="utf-8"))
        named = {key: {name: tuple(its) for name, its in document[key].items()} for key in ("lanes", "again")}
        return Mail(**{**document, "tasks": tuple(document["tasks"]), **named})


def tick_source(name: str, mailbox: str, program: bytes) -> type[DataSource]:
    """A data source class of its own for each run, so that the program travels inside it.

    Spark opens the class in four planner processes before the first tick. They know only what is imported in the methods
    they call, so that none of them loads the engine: each would take a second for it.
    """

    class TickReader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
            return {"entry": -1}

        def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
            mail = self._mail()
            ready = mail["entry"] > start["entry"] and time.time() >= mail["not_before_s"]
            return {"entry": mail["entry"]} if ready else start

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            mail = self._mail()
            # An older entry's plan has been carried out: Spark is repeating a batch that the ledger knows.
            tasks = mail["tasks"] if mail["entry"] == end["entry"] else []
            return [InputPartition(task) for task in tasks] or [InputPartition(None)]

        def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
            if partition.value is not None:
                import pyarrow as pa

                from elastream.engine.program import load_program
                from elastream.engine.task import run_task
                from elastream.engine.work import TaskWork

                receipt = run_task(*load_program(program), TaskWork.from_json(partition.value))
                yield pa.record_batch([pa.array([receipt.to_json()])], names=["receipt"])

        def commit(self, end: dict[str, int]) -> None:
            """The ledger is the only record of what is done."""

        def _mail(self) -> Any:
            with open(f"{mailbox}/{PLAN_FILE}", encoding="utf-8") as file:
                return json.load(file)

    class TickSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return RECEIPT_SCHEMA

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
            return TickReader()

    return TickSource
