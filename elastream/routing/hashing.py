"""Hashes of key columns: the same in every process and on every machine, computed over whole columns."""

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]

_NULL = np.uint64(0x9E3779B97F4A7C15)


def hash_columns(batch: pa.RecordBatch, columns: tuple[str, ...]) -> Hashes:
    """One 64-bit hash a row, from the values of the columns together."""
    combined = np.zeros(batch.num_rows, np.uint64)
    for column in columns:
        combined = _mix(combined + _hash_column(batch.column(column)))
    return combined


def _hash_column(values: pa.Array) -> Hashes:
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        numbers = values.cast(pa.uint64() if pa.types.is_unsigned_integer(kind) else pa.int64())
        return _with_nulls(values, np.asarray(numbers.fill_null(0)).view(np.uint64))
    if pa.types.is_floating(kind):
        # Adding zero makes -0.0 equal to 0.0 in its bits too.
        numbers = np.asarray(values.cast(pa.float64()).fill_null(0.0)) + 0.0
        return _with_nulls(values, np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64))
    if pa.types.is_nested(kind):
        text = pa.array([None if value is None else repr(_plain(value)) for value in values.to_pylist()], pa.string())
        return _hash_column(text)
    if pa.types.is_dictionary(kind):
        return _hash_column(values.dictionary_decode())
    encoded = pc.dictionary_encode(values)
    words = np.asarray(encoded.dictionary.cast(pa.string() if not _is_binary(kind) else kind).to_pandas(), dtype=object)
    hashes = pd.util.hash_array(words, categorize=False) if len(words) else np.zeros(1, np.uint64)
    return _with_nulls(values, hashes[np.asarray(encoded.indices.fill_null(0))])


def _plain(value: object) -> object:
    """Zeros without a sign, for they are equal."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _with_nulls(values: pa.Array, hashes: Hashes) -> Hashes:
    if not values.null_count:
        return hashes
    return np.where(np.asarray(values.is_null()), _NULL, hashes)


def _mix(x: Hashes) -> Hashes:
    """A bijection of 64 bits in which every bit of the input reaches every bit of the output."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
