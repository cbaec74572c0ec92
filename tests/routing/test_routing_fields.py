"""Fields grouping: a key stays in one lane, whatever its type, in every process and on every machine."""

import base64
import datetime as dt
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from routes import ACTIVE, PATIENT, batch_of

from elastream.routing import Sender, Snapshot, lanes_of
from elastream.routing.hashing import hash_columns
from elastream.topology import Grouping, groupings

_MOMENTS = st.datetimes(min_value=dt.datetime(1970, 1, 1), max_value=dt.datetime(2100, 1, 1))

KEYS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "strings": (pa.string(), st.text(max_size=8)),
    "long strings": (pa.large_string(), st.text(max_size=8)),
    "bytes": (pa.binary(), st.binary(max_size=8)),
    "longs": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "bytes of one": (pa.int8(), st.integers(-128, 127)),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "booleans": (pa.bool_(), st.booleans()),
    "doubles": (pa.float64(), st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0])),
    "floats": (pa.float32(), st.floats(allow_nan=False, width=32) | st.sampled_from([0.0, -0.0])),
    "timestamps": (pa.timestamp("us", tz="UTC"), _MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC))),
    "dates": (pa.date32(), st.dates()),
    "decimals": (pa.decimal128(12, 2), st.decimals(-(10**6), 10**6, places=2)),
    "lists": (pa.list_(pa.string()), st.lists(st.text(max_size=3) | st.none(), max_size=3)),
    "structs": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.integers(0, 3), "b": st.text(max_size=2)}),
    ),
}


def _frozen(value: Any) -> Hashable:
    """A value that equals another's exactly when the keys are equal."""
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return tuple((name, _frozen(item)) for name, item in value.items())
    return value  # type: ignore[no-any-return]


@st.composite
def _keyed_rows(draw: st.DrawFn, kind: str) -> tuple[pa.Array, list[int]]:
    """Keys that come again and again, and where the stream of them is cut into batches."""
    type_, values = KEYS[kind]
    pool = draw(st.lists(values | st.none(), min_size=1, max_size=6))
    rows = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=40))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    return pa.array(rows, type_), [0, *cuts, len(rows)]


def _lanes_by_key(
    batches: list[pa.RecordBatch], columns: tuple[str, ...], grouping: Grouping, to: Snapshot
) -> dict[Hashable, set[int]]:
    """Every lane that a tuple of the key went to."""
    found: dict[Hashable, set[int]] = {}
    for batch in batches:
        lanes = lanes_of(grouping, batch, to, Sender())
        assert len(lanes) == batch.num_rows
        for row, lane in zip(batch.select(list(columns)).to_pylist(), lanes.tolist(), strict=True):
            found.setdefault(_frozen(row), set()).add(lane)
    return found


@pytest.mark.parametrize("kind", KEYS)
@PATIENT
@given(data=st.data(), active=ACTIVE)
def test_fields_never_splits_a_key_over_lanes_or_batches(
    kind: str, data: st.DataObject, active: tuple[int, ...]
) -> None:
    keys, cuts = data.draw(_keyed_rows(kind))
    whole = batch_of(key=keys)
    batches = [whole.slice(a, b - a) for a, b in pairwise(cuts)]
    found = _lanes_by_key(batches, ("key",), groupings.fields("key"), Snapshot(active))
    assert {key: lanes for key, lanes in found.items() if len(lanes) > 1} == {}
    assert set().union(*found.values()) <= set(active)


@PATIENT
@given(
    first=_keyed_rows("longs"),
    second=_keyed_rows("strings"),
    third=_keyed_rows("doubles"),
    active=ACTIVE,
    cut=st.integers(0, 40),
)
def test_fields_of_several_columns_never_splits_a_key(
    first: tuple[pa.Array, list[int]],
    second: tuple[pa.Array, list[int]],
    third: tuple[pa.Array, list[int]],
    active: tuple[int, ...],
    cut: int,
) -> None:
    rows = min(len(first[0]), len(second[0]), len(third[0]))
    whole = batch_of(a=first[0][:rows], b=second[0][:rows], c=third[0][:rows])
    batches = [whole.slice(0, min(cut, rows)), whole.slice(min(cut, rows))]
    found = _lanes_by_key(batches, ("a", "b", "c"), groupings.fields("a", "b", "c"), Snapshot(active))
    assert all(len(lanes) == 1 for lanes in found.values())


@pytest.mark.parametrize("of", [pa.float32(), pa.float64()])
def test_zero_is_one_key_whatever_its_sign(of: pa.DataType) -> None:
    hashes = hash_columns(batch_of(key=pa.array([0.0, -0.0], of)), ("key",))
    assert hashes[0] == hashes[1]


def test_not_a_number_is_one_key_whatever_its_bits() -> None:
    # What a division gives and what a file holds are both "not a number", but differ in their sign bit.
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001], np.uint64)
    hashes = hash_columns(batch_of(key=bits.view(np.float64)), ("key",))
    assert len(set(hashes.tolist())) == 1


def test_zero_inside_a_list_is_one_key_whatever_its_sign() -> None:
    hashes = hash_columns(batch_of(key=pa.array([[1.0, 0.0], [1.0, -0.0]])), ("key",))
    assert hashes[0] == hashes[1]


@PATIENT
@given(rows=_keyed_rows("strings"), active=ACTIVE)
def test_a_dictionary_encoded_key_goes_where_the_plain_key_goes(
    rows: tuple[pa.Array, list[int]], active: tuple[int, ...]
) -> None:
    plain, cuts = rows
    encoded = plain.dictionary_encode()
    to = Snapshot(active)
    expected = lanes_of(groupings.fields("key"), batch_of(key=plain), to, Sender()).tolist()
    assert lanes_of(groupings.fields("key"), batch_of(key=encoded), to, Sender()).tolist() == expected
    # The second half has a dictionary in which the words stand at other places.
    at = cuts[len(cuts) // 2]
    later = batch_of(key=plain[at:].dictionary_encode())
    assert lanes_of(groupings.fields("key"), later, to, Sender()).tolist() == expected[at:]


def test_a_null_that_a_dictionary_holds_as_a_word_is_the_null_key() -> None:
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array(["a", None]))
    wanted = hash_columns(batch_of(key=pa.array(["a", None, "a"])), ("key",))
    assert hash_columns(batch_of(key=encoded), ("key",)).tolist() == wanted.tolist()


@PATIENT
@given(rows=st.lists(st.tuples(st.text(max_size=2), st.text(max_size=2)), min_size=2, max_size=2, unique=True))
@example([("a", "b"), ("b", "a")])
@example([("ab", ""), ("a", "b")])
def test_columns_are_hashed_each_for_itself_and_in_their_order(rows: list[tuple[str, str]]) -> None:
    batch = batch_of(a=[a for a, _ in rows], b=[b for _, b in rows])
    first, second = hash_columns(batch, ("a", "b"))
    assert first != second


def test_keys_are_spread_over_the_lanes_about_evenly() -> None:
    for keys in (np.arange(20_000), np.arange(20_000) * 4096, [f"user-{n}" for n in range(20_000)]):
        counts = Counter(
            lanes_of(groupings.fields("key"), batch_of(key=keys), Snapshot(tuple(range(7))), Sender()).tolist()
        )
        assert len(counts) == 7
        assert max(counts.values()) < 1.15 * 20_000 / 7


_OF_ALL_KINDS = batch_of(
    text=["", "a", "zürich", None],
    number=[0, -1, 2**40, None],
    real=[0.0, -0.0, 1.5, None],
    yes=[True, False, None, True],
    at=pa.array([0, 1, 1_700_000_000_000_000, None], pa.timestamp("us", tz="UTC")),
    words=[["a", "b"], [], None, ["b", "a"]],
    raw=[b"", b"\xff\x00", None, b"a"],
)

_HASH_ELSEWHERE = """
import base64, json, sys
import pyarrow as pa
from elastream.routing.hashing import hash_columns
batch = pa.ipc.open_stream(base64.b64decode(sys.stdin.read())).read_next_batch()
print(json.dumps({name: hash_columns(batch, (name,)).tolist() for name in batch.schema.names}))
"""


def test_hashes_are_the_same_in_another_process() -> None:
    here = {name: hash_columns(_OF_ALL_KINDS, (name,)).tolist() for name in _OF_ALL_KINDS.schema.names}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _OF_ALL_KINDS.schema) as writer:
        writer.write_batch(_OF_ALL_KINDS)
    assert os.environ.get("PYTHONHASHSEED") != "4711"
    done = subprocess.run(
        [sys.executable, "-c", _HASH_ELSEWHERE],
        input=base64.b64encode(sink.getvalue().to_pybytes()).decode(),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "4711"},
    )
    assert json.loads(done.stdout) == here


def test_hashes_are_those_of_every_other_machine() -> None:
    # Written down once: a base that was begun by another version or machine must find its keys in the same groups.
    batch = batch_of(text=["a", "abc", None], number=[1, 2**40, None])
    assert hash_columns(batch, ("text",)).tolist() == [_hash_of(b"a"), _hash_of(b"abc"), 16294208416658607535]
    assert _hash_of(b"a") == 13798554072620915829
    assert hash_columns(batch, ("number",)).tolist()[0] == 6238072747940578789
    assert hash_columns(batch, ("number",)).tolist()[2] == 16294208416658607535


def _mixed(x: int) -> int:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ x >> shift) * factor % 2**64
    return x ^ x >> 31


def _hash_of(text: bytes) -> int:
    """What the hash of a text is defined to be, byte by byte."""
    if len(text) > 64:
        return _mixed(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))
    found = _mixed((len(text) + 0xA0761D6478BD642F) % 2**64)
    for at in range(0, len(text), 8):
        found = _mixed(found ^ int.from_bytes(text[at : at + 8], "little"))
    return _mixed(found)


@PATIENT
@given(texts=st.lists(st.binary(max_size=80) | st.integers(60, 140).map(lambda n: b"x" * n), min_size=1, max_size=9))
def test_texts_are_hashed_as_they_are_defined_to_be_whatever_stands_beside_them(texts: list[bytes]) -> None:
    whole = pa.array([b"before", *texts, b"behind"]).slice(1, len(texts))
    assert hash_columns(batch_of(key=whole), ("key",)).tolist() == [_hash_of(text) for text in texts]
