"""Hashes of key columns: the same in every process, on every machine and in every later version.

A base remembers which lane owns which keys by them, so they are written out here and use no library's own hash. `VERSION`
goes up should they ever change, and a base that was begun with another one is refused.
"""

import datetime as dt
import decimal
import hashlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]

VERSION = 1

_NULL = np.uint64(0x9E3779B97F4A7C15)
_NAN = np.uint64(0x7FF8000000000000)
_SEED = np.uint64(0xA0761D6478BD642F)

SHORT = 64
"""Texts of up to so many bytes are hashed word by word, all rows at once; longer ones one by one."""

_WORD = 8
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(_WORD)] + [2**64 - 1], np.uint64)


def hash_columns(batch: pa.RecordBatch, columns: tuple[str, ...]) -> Hashes:
    """One 64-bit hash per row, from the values of the columns together."""
    combined = np.zeros(batch.num_rows, np.uint64)
    for column in columns:
        combined = _mix(combined + _hash_column(batch.column(column)))
    return combined


def _hash_column(values: pa.Array) -> Hashes:
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _hash_column(values.dictionary_decode())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        numbers = values.cast(pa.uint64() if pa.types.is_unsigned_integer(kind) else pa.int64())
        return _with_nulls(values, np.asarray(numbers.fill_null(0)).view(np.uint64))
    if pa.types.is_floating(kind):
        # Adding zero makes -0.0 equal to 0.0 in its bits too.
        numbers = np.asarray(values.cast(pa.float64()).fill_null(0.0)) + 0.0
        return _with_nulls(values, np.where(np.isnan(numbers), _NAN, numbers.view(np.uint64)))
    if pa.types.is_temporal(kind):
        whole = values.cast(pa.int64()) if kind.bit_width == 64 else values.cast(pa.int32()).cast(pa.int64())
        return _with_nulls(values, np.asarray(whole.fill_null(0)).view(np.uint64))
    if pa.types.is_nested(kind):
        texts = [None if value is None else _canonical(value) for value in values.to_pylist()]
        return _hash_column(pa.array(texts, pa.string()))
    if not (_is_text(kind) or _is_binary(kind)):
        values = values.cast(pa.string())
    return _with_nulls(values, _hash_bytes(values.cast(pa.large_binary())))


def _hash_bytes(values: pa.Array) -> Hashes:
    """Of texts and bytes, each as a row of words of eight bytes, the last one filled up with zeros."""
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(values) + 1, values.offset * 8)
    starts, lengths = bounds[:-1], np.diff(bounds)
    hashes = _mix(lengths.astype(np.uint64) + _SEED)
    if data is None or not len(lengths):
        return hashes
    short = np.minimum(lengths, SHORT)
    words = _words_of(data, int(bounds[-1]))
    for at in range(0, int(short.max()), _WORD):
        rows = np.flatnonzero(short > at)
        word = words[starts[rows] + at] & _MASKS[np.minimum(short[rows] - at, _WORD)]
        hashes[rows] = _mix(hashes[rows] ^ word)
    for row in np.flatnonzero(lengths > SHORT).tolist():
        digest = hashlib.blake2b(data[starts[row] : starts[row] + lengths[row]], digest_size=8).digest()
        hashes[row] = int.from_bytes(digest, "little")
    return hashes


def _words_of(data: pa.Buffer, stop: int) -> Hashes:
    """The eight bytes from every place on, as little-endian numbers; bytes behind the end are zeros."""
    padded = np.zeros(stop + _WORD, np.uint8)
    padded[:stop] = np.frombuffer(data, np.uint8, stop)
    return np.ndarray((stop + 1,), "<u8", padded, strides=(1,))


def _canonical(value: object) -> str:
    """A nested value as text, the same for values that are equal."""
    if isinstance(value, float):
        return "nan" if value != value else repr(value + 0.0)
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_canonical(name)}:{_canonical(item)}" for name, item in value.items()) + "}"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta | decimal.Decimal):
        return str(value)
    return repr(value)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _with_nulls(values: pa.Array, hashes: Hashes) -> Hashes:
    if not values.null_count:
        return hashes
    return np.where(np.asarray(pc.is_null(values)), _NULL, hashes)


def _mix(x: Hashes) -> Hashes:
    """A bijection of 64 bits in which every bit of the input reaches every bit of the output."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
