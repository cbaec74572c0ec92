"""Names of what waits: lanes, slices of segments, and the schemas of their columns.

A segment is a file of Arrow record batches, one after another. A slice names one of them by its place and checksum, and the
rows in it that are meant.
"""

import base64
import hashlib
from collections.abc import Callable
from typing import NamedTuple, NewType

import pyarrow as pa
from pyarrow import ipc

from elastream.lanes.runs import Runs, shared_out

SchemaId = NewType("SchemaId", str)

FOLDER = "segments"

BATCH_BYTES = 1 << 20
"""A lane that takes a few tuples reads the whole batch they are in: so batches stay about this small."""


STATE = "/state"
"""Behind the name of an operator: what it remembers, among what is written for lanes. No operator has such a name."""


PARTS = "/parts"
"""Likewise: parts of the states of keys that are split, on their way to the lanes in which these keys live."""


class LaneId(NamedTuple):
    """Which replica of which operator."""

    operator: str
    lane: int


class LaneOfOrigin(NamedTuple):
    """A lane, and where the rows that are written for it come from; see `Slice.origin`."""

    operator: str
    lane: int
    origin: str


WrittenFor = LaneId | LaneOfOrigin
"""What rows are written for together."""


class Slice(NamedTuple):
    """Rows `first` to `first + rows` of the record batch at `offset` of a segment."""

    segment: str
    offset: int
    length: int
    crc32: int
    schema: SchemaId
    first: int
    rows: int
    runs: Runs = b""
    """The key groups of all rows of the batch; empty where no key chose the lane."""
    origin: str = ""
    """The source and part from which all rows come, where an operator behind needs it for watermarks; else empty."""

    def moved_to(self, owner: Callable[[int], int]) -> "list[tuple[int, Slice]]":
        """The slice in pieces, each with the lane that owns its key groups."""
        return [
            (lane, self._replace(first=first, rows=rows))
            for lane, first, rows in shared_out(self.runs, self.first, self.rows, owner)
        ]


class Appended(NamedTuple):
    """A slice that a work put at the end of a lane."""

    operator: str
    lane: int
    slice: Slice


def schema_id(schema: pa.Schema) -> SchemaId:
    return SchemaId(hashlib.blake2b(schema.serialize().to_pybytes(), digest_size=8).hexdigest())


def encode_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def decode_schema(text: str) -> pa.Schema:
    return ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
