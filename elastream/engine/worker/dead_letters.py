"""Dead letters: the tuples on which an operator raised, each with its error, as it came and so that it can come again.

`row` is for people: JSON, bytes as base64. `tuple` is for machines: the row alone as an Arrow stream, with all its types.
A `timer` that failed has its key there instead of a tuple.
"""

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
from pyarrow import ipc

from elastream.topology import DUE, parse_schema, stored
from elastream.user_code import describe

DEAD_LETTERS = "dead-letters"
"""The output that every run has."""

DEAD_LETTER_SCHEMA = parse_schema(
    "operator string, replica int, error string, row string, failed_at timestamp, tuple binary, timer boolean"
)

_LINE = re.compile(r" at .+:\d+$")


@dataclass
class Failure:
    """One tuple set aside. `batch` has one row, with its due time."""

    batch: pa.RecordBatch
    error: str
    undeclared: bool = False
    """True when the function did not raise, but gave what it had not declared."""
    timer: bool = False
    """True for the timer of a key: the row is the key."""

    @classmethod
    def of(cls, batch: pa.RecordBatch, index: int, error: str, *, undeclared: bool = False) -> Self:
        """A row of a batch: as it came, whatever the function has done to its own copy of it."""
        return cls(batch.slice(index, 1), error, undeclared)

    @property
    def row(self) -> dict[str, Any]:
        """Its columns; a value that Python cannot hold is rendered as text."""
        rest = self.batch.drop_columns([DUE])
        return {name: _value(column) for name, column in zip(rest.schema.names, rest.columns, strict=True)}

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
        "timer": [failure.timer for _, _, failure in failures],
        DUE: [failure.due_us for _, _, failure in failures],
    }
    return pa.RecordBatch.from_pydict(columns, schema=stored(DEAD_LETTER_SCHEMA))


def tuple_of(data: bytes) -> pa.RecordBatch:
    """The tuple of a letter, with its due time."""
    return ipc.open_stream(pa.py_buffer(data)).read_next_batch()


def kind_of(error: str) -> str:
    """What failures of the same cause have in common: the type of an error and its line, but not its message."""
    line = _LINE.search(error)
    return f"{error.partition(':')[0]}{line.group()}" if line else error


def row_to_json(row: dict[str, Any]) -> str:
    """JSON for people; whatever JSON cannot say becomes text."""
    try:
        return json.dumps(_plain(row), default=str)
    except Exception as error:
        return json.dumps({"columns": list(row), "error": describe(error)})


def _value(column: pa.Array) -> Any:
    """The value of a column of one row: a date beyond the year 9999 and text that is not UTF-8 are no values of Python."""
    for render in (_as_python, _as_text, _as_bytes, _as_printed):
        try:
            return render(column)
        except Exception:
            continue
    return f"(a value of type {column.type} that cannot be shown)"


def _as_python(column: pa.Array) -> Any:
    return column[0].as_py()


def _as_text(column: pa.Array) -> Any:
    return column.cast(pa.string())[0].as_py()


def _as_printed(column: pa.Array) -> str:
    return " ".join(column.to_string().split())


def _as_bytes(column: pa.Array) -> Any:
    return column.cast(pa.binary())[0].as_py()


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
