"""Segments: immutable Arrow IPC files. A task writes one per schema; a lane's tuples are byte ranges of it.

A slice names the range of one record batch, its checksum and the rows in it that are meant, so that reading it is one
ranged read and needs no footer.
"""

import base64
import hashlib
import uuid
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple, NewType

import pyarrow as pa
from pyarrow import ipc

from elastream.errors import Damaged
from elastream.lanes.store import Store

SchemaId = NewType("SchemaId", str)

FOLDER = "segments"

BATCH_BYTES = 1 << 20
"""A lane that takes a few tuples a tick reads the whole batch they are in: so batches stay about this small."""


class LaneId(NamedTuple):
    """Which replica of which operator."""

    operator: str
    lane: int


class Slice(NamedTuple):
    """Rows `first` to `first + rows` of the record batch at `offset` of a segment."""

    segment: str
    offset: int
    length: int
    crc32: int
    schema: SchemaId
    first: int
    rows: int


class Appended(NamedTuple):
    """A slice that a task put at the end of a lane."""

    operator: str
    lane: int
    slice: Slice


def schema_id(schema: pa.Schema) -> SchemaId:
    return SchemaId(hashlib.blake2b(schema.serialize().to_pybytes(), digest_size=8).hexdigest())


def encode_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def decode_schema(text: str) -> pa.Schema:
    return ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def write_segments(
    store: Store, tick: int, batches: Mapping[LaneId, list[pa.RecordBatch]]
) -> tuple[list[Appended], dict[SchemaId, pa.Schema]]:
    """Write what a task made for each lane, one run of batches a lane, not one a slice that it read."""
    by_schema: dict[SchemaId, dict[LaneId, list[pa.RecordBatch]]] = {}
    schemas: dict[SchemaId, pa.Schema] = {}
    for lane, pieces in batches.items():
        filled = [piece for piece in pieces if piece.num_rows]
        if filled:
            key = schema_id(filled[0].schema)
            schemas[key] = filled[0].schema
            by_schema.setdefault(key, {})[lane] = filled
    appended: list[Appended] = []
    for key, lanes in by_schema.items():
        appended += _write_one(store, tick, key, schemas[key], lanes)
    return appended, schemas


def _write_one(
    store: Store, tick: int, key: SchemaId, schema: pa.Schema, lanes: Mapping[LaneId, list[pa.RecordBatch]]
) -> list[Appended]:
    name = f"{tick:012d}-{uuid.uuid4().hex}.arrow"
    sink = pa.BufferOutputStream()
    places: list[tuple[LaneId, int, int, int]] = []
    with ipc.new_file(sink, schema) as writer:
        for lane, pieces in lanes.items():
            for batch in _sized(pieces):
                writer.write_batch(batch)
                # Before the first batch comes the file's header, so the place is counted back from the end.
                size = ipc.get_record_batch_size(batch)
                places.append((lane, sink.tell() - size, size, batch.num_rows))
    data = sink.getvalue()
    store.write(f"{FOLDER}/{name}", data)
    view = memoryview(data)
    return [
        Appended(lane.operator, lane.lane, Slice(name, at, size, zlib.crc32(view[at : at + size]), key, 0, rows))
        for lane, at, size, rows in places
    ]


def _sized(pieces: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The pieces as one, cut into batches of about `BATCH_BYTES`."""
    for whole in pa.Table.from_batches(pieces).combine_chunks().to_batches():
        rows = max(1, int(BATCH_BYTES * whole.num_rows / max(1, whole.nbytes)))
        for at in range(0, whole.num_rows, rows):
            yield whole.slice(at, rows)


def read_slice(store: Store, piece: Slice, schema: pa.Schema) -> pa.RecordBatch:
    """The rows a slice means, after its checksum was found right."""
    name = f"{FOLDER}/{piece.segment}"
    try:
        data = store.read_range(name, piece.offset, piece.length)
    except FileNotFoundError:
        raise Damaged(
            f"segment {name} in {store}: it is gone, but tuples of it wait; restore it and start again"
        ) from None
    if data.size != piece.length or zlib.crc32(data) != piece.crc32:
        raise Damaged(
            f"segment {name} in {store}: bytes {piece.offset}..{piece.offset + piece.length} do not have "
            f"checksum {piece.crc32}; restore the file from a copy and start again"
        )
    return ipc.read_record_batch(pa.py_buffer(data), schema).slice(piece.first, piece.rows)
