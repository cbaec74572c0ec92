"""Dead letters: the tuples on which an operator raised, each with its error, as it came and so that it can come again.

`row` is for people: JSON, bytes as base64. `tuple` is for machines: the row alone as an Arrow stream, with all its types.
"""

import base64
import json
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
from pyarrow import ipc

from elastream.topology import DUE, parse_schema, stored

DEAD_LETTERS = "dead-letters"
"""The output that every run has."""

DEAD_LETTER_SCHEMA = parse_schema(
    "operator string, replica int, error string, row string, failed_at timestamp, tuple binary"
)

LONGEST = 500
"""Characters of an error that are kept."""


@dataclass
class Failure:
    """One tuple set aside. `batch` has one row, with its due time."""

    batch: pa.RecordBatch
    error: str
    undeclared: bool = False
    """True when the function did not raise, but gave what it had not declared."""

    @classmethod
    def of(cls, batch: pa.RecordBatch, index: int, error: str, *, undeclared: bool = False) -> Self:
        """A row of a batch: as it came, whatever the function has done to its own copy of it."""
        return cls(batch.slice(index, 1), error, undeclared)

    @property
    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = self.batch.drop_columns([DUE]).to_pylist()[0]
        return row

    @property
    def due_us(self) -> int:
        return int(self.batch.column(DUE)[0].value)


def all_failed(batch: pa.RecordBatch, error: str) -> list[Failure]:
    return [Failure.of(batch, index, error) for index in range(batch.num_rows)]


def letters(failures: Sequence[tuple[str, int, Failure]], wall_s: float) -> pa.RecordBatch:
    """Dead letters of these operators' lanes, which failed at this time."""
    now = int(wall_s * 1e6)
    columns = {
        "operator": [name for name, _, _ in failures],
        "replica": [lane for _, lane, _ in failures],
        "error": [failure.error for _, _, failure in failures],
        "row": [row_to_json(failure.row) for _, _, failure in failures],
        "failed_at": [now] * len(failures),
        "tuple": [_to_bytes(failure.batch) for _, _, failure in failures],
        DUE: [failure.due_us for _, _, failure in failures],
    }
    return pa.RecordBatch.from_pydict(columns, schema=stored(DEAD_LETTER_SCHEMA))


def tuple_of(data: bytes) -> pa.RecordBatch:
    """The tuple of a letter, with its due time."""
    return ipc.open_stream(pa.py_buffer(data)).read_next_batch()


def describe(error: BaseException) -> str:
    """The error and the line of the user's code that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    try:
        said = str(error)
    except Exception:
        said = "(an error that cannot be shown)"
    return short(f"{type(error).__name__}: {said}{where}")


def row_to_json(row: dict[str, Any]) -> str:
    return json.dumps(_plain(row), default=str)


def short(value: object) -> str:
    """As text that can be stored: not too long, and without half of a character."""
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _plain(value: Any) -> Any:
    """Values that JSON does not know, as text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value


def _to_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())
