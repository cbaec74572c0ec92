"""What tests of lanes share: slices, rows, batches of numbers, and a byte that turns."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import settings

from elastream.lanes import Book, SchemaId, Slice

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=50)

Row = tuple[str, int, int]
"""A tuple's identity: segment, offset of its batch, place in it."""


def slice_of(segment: str, offset: int, rows: int, first: int = 0) -> Slice:
    return Slice(segment, offset, 64, 0, SchemaId("s"), first, rows)


def rows_of(pieces: "list[Slice] | Iterator[Slice]") -> list[Row]:
    return [(p.segment, p.offset, at) for p in pieces for at in range(p.first, p.first + p.rows)]


def as_json(book: Book) -> Any:
    """What would be stored, so that tuples and lists are the same."""
    return json.loads(json.dumps(book.to_json()))


def numbered(first: int, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"id": np.arange(first, first + rows), "word": [f"w{n}" for n in range(first, first + rows)]}
    )


def flip_byte(path: Path, at: int) -> bytes:
    """Turn one byte of a file; gives what the file was."""
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    return whole
