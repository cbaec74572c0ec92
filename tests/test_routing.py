"""Which lane a tuple goes to: keys stay together, shares stay even, no tuple is lost or doubled."""

import base64
import datetime as dt
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
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elastream.errors import OperatorFailed
from elastream.routing import Sender, Snapshot, lanes_of, split
from elastream.routing.hashing import hash_columns
from elastream.topology import Grouping, groupings

# The machine may be busy with other work: how long an example takes says nothing.
PATIENT = settings(deadline=None, max_examples=40)

ACTIVE = st.lists(st.integers(0, 63), min_size=1, max_size=9, unique=True).map(tuple)
SENDERS = st.builds(Sender, lane=st.integers(0, 63), turn=st.integers(0, 10_000))

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


def _batch(**columns: Any) -> pa.RecordBatch:
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _numbers(rows: int) -> pa.RecordBatch:
    return _batch(id=np.arange(rows), group=np.arange(rows) % 101)


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


# -- fields


@pytest.mark.parametrize("kind", KEYS)
@PATIENT
@given(data=st.data(), active=ACTIVE)
def test_fields_never_splits_a_key_over_lanes_or_batches(
    kind: str, data: st.DataObject, active: tuple[int, ...]
) -> None:
    keys, cuts = data.draw(_keyed_rows(kind))
    whole = _batch(key=keys)
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
    whole = _batch(a=first[0][:rows], b=second[0][:rows], c=third[0][:rows])
    batches = [whole.slice(0, min(cut, rows)), whole.slice(min(cut, rows))]
    found = _lanes_by_key(batches, ("a", "b", "c"), groupings.fields("a", "b", "c"), Snapshot(active))
    assert all(len(lanes) == 1 for lanes in found.values())


@pytest.mark.parametrize("of", [pa.float32(), pa.float64()])
def test_zero_is_one_key_whatever_its_sign(of: pa.DataType) -> None:
    hashes = hash_columns(_batch(key=pa.array([0.0, -0.0], of)), ("key",))
    assert hashes[0] == hashes[1]


def test_not_a_number_is_one_key_whatever_its_bits() -> None:
    # What a division gives and what a file holds are both "not a number", but differ in their sign bit.
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001], np.uint64)
    hashes = hash_columns(_batch(key=bits.view(np.float64)), ("key",))
    assert len(set(hashes.tolist())) == 1


def test_zero_inside_a_list_is_one_key_whatever_its_sign() -> None:
    hashes = hash_columns(_batch(key=pa.array([[1.0, 0.0], [1.0, -0.0]])), ("key",))
    assert hashes[0] == hashes[1]


@PATIENT
@given(rows=_keyed_rows("strings"), active=ACTIVE)
def test_a_dictionary_encoded_key_goes_where_the_plain_key_goes(
    rows: tuple[pa.Array, list[int]], active: tuple[int, ...]
) -> None:
    plain, cuts = rows
    encoded = plain.dictionary_encode()
    to = Snapshot(active)
    expected = lanes_of(groupings.fields("key"), _batch(key=plain), to, Sender()).tolist()
    assert lanes_of(groupings.fields("key"), _batch(key=encoded), to, Sender()).tolist() == expected
    # The second half has a dictionary in which the words stand at other places.
    at = cuts[len(cuts) // 2]
    later = _batch(key=plain[at:].dictionary_encode())
    assert lanes_of(groupings.fields("key"), later, to, Sender()).tolist() == expected[at:]


def test_a_null_that_a_dictionary_holds_as_a_word_is_the_null_key() -> None:
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array(["a", None]))
    wanted = hash_columns(_batch(key=pa.array(["a", None, "a"])), ("key",))
    assert hash_columns(_batch(key=encoded), ("key",)).tolist() == wanted.tolist()


@PATIENT
@given(rows=st.lists(st.tuples(st.text(max_size=2), st.text(max_size=2)), min_size=2, max_size=2, unique=True))
@example([("a", "b"), ("b", "a")])
@example([("ab", ""), ("a", "b")])
def test_columns_are_hashed_each_for_itself_and_in_their_order(rows: list[tuple[str, str]]) -> None:
    batch = _batch(a=[a for a, _ in rows], b=[b for _, b in rows])
    first, second = hash_columns(batch, ("a", "b"))
    assert first != second


def test_keys_are_spread_over_the_lanes_about_evenly() -> None:
    for keys in (np.arange(20_000), np.arange(20_000) * 4096, [f"user-{n}" for n in range(20_000)]):
        counts = Counter(
            lanes_of(groupings.fields("key"), _batch(key=keys), Snapshot(tuple(range(7))), Sender()).tolist()
        )
        assert len(counts) == 7
        assert max(counts.values()) < 1.15 * 20_000 / 7


def test_one_replica_more_leaves_most_keys_that_shared_a_lane_together() -> None:
    batch = _batch(key=np.arange(5_000))
    before = lanes_of(groupings.fields("key"), batch, Snapshot((0, 1)), Sender())
    after = lanes_of(groupings.fields("key"), batch, Snapshot((0, 1, 2, 3)), Sender())
    # Lanes own ranges of key groups: doubling cuts each range in two and mixes none.
    assert (after // 2 == before).all()


_OF_ALL_KINDS = _batch(
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
    batch = _batch(text=["a", "abc", None], number=[1, 2**40, None])
    assert hash_columns(batch, ("text",)).tolist() == [4331099054663464410, 13722544347803916707, 16294208416658607535]
    assert hash_columns(batch, ("number",)).tolist()[0] == 6238072747940578789
    assert hash_columns(batch, ("number",)).tolist()[2] == 16294208416658607535


# -- partial key


@PATIENT
@given(
    keys=st.lists(st.integers(0, 12), min_size=1, max_size=200),
    active=ACTIVE,
    loads=st.lists(st.lists(st.integers(0, 500), min_size=9, max_size=9), min_size=1, max_size=4),
)
def test_partial_key_uses_at_most_two_lanes_a_key(
    keys: list[int], active: tuple[int, ...], loads: list[list[int]]
) -> None:
    found: dict[int, set[int]] = {}
    for load in loads:
        to = Snapshot(active, tuple(load[: len(active)]))
        lanes = lanes_of(groupings.partial_key("key"), _batch(key=keys), to, Sender())
        for key, lane in zip(keys, lanes.tolist(), strict=True):
            found.setdefault(key, set()).add(lane)
    assert max(len(lanes) for lanes in found.values()) <= 2
    assert set().union(*found.values()) <= set(active)


@settings(PATIENT, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), lanes=st.integers(3, 16))
def test_partial_key_is_more_even_than_fields_when_a_few_keys_are_hot(seed: int, lanes: int) -> None:
    keys = np.random.default_rng(seed).zipf(1.6, 5_000)
    to = Snapshot(tuple(range(lanes)))
    busiest = {
        grouping.kind: max(Counter(lanes_of(grouping, _batch(key=keys), to, Sender()).tolist()).values())
        for grouping in (groupings.partial_key("key"), groupings.fields("key"))
    }
    assert busiest["partial_key"] < busiest["fields"]


def test_keys_that_share_one_lane_of_partial_key_need_not_share_the_other() -> None:
    lanes = tuple(range(5))
    pairs = {_candidates(key, lanes) for key in range(200)}
    assert pairs == {(a, b) for a in lanes for b in lanes if a < b}


@pytest.mark.parametrize("lanes", [2, 3, 5, 8, 16])
def test_partial_key_is_about_even_when_keys_are_many(lanes: int) -> None:
    batch = _batch(key=np.arange(10_000))
    counts = Counter(lanes_of(groupings.partial_key("key"), batch, Snapshot(tuple(range(lanes))), Sender()).tolist())
    assert max(counts.values()) <= 1.1 * 10_000 / lanes


def _candidates(key: int, active: tuple[int, ...]) -> tuple[int, ...]:
    """Where a key may go, as places in `active`."""
    rows = _batch(key=[key] * 100)
    counts = Counter(lanes_of(groupings.partial_key("key"), rows, Snapshot(active), Sender()).tolist())
    assert set(counts.values()) == {50}
    return tuple(sorted(active.index(lane) for lane in counts))


@PATIENT
@given(
    key=st.integers(0, 1000),
    active=ACTIVE.filter(lambda lanes: len(lanes) > 1),
    waiting=st.tuples(st.integers(0, 300), st.integers(0, 300)),
    rows=st.integers(1, 400),
)
def test_partial_key_fills_the_shorter_queue_first_and_then_both_alike(
    key: int, active: tuple[int, ...], waiting: tuple[int, int], rows: int
) -> None:
    low, high = _candidates(key, active)
    queued = [7] * len(active)
    queued[low], queued[high] = waiting
    to = Snapshot(active, tuple(queued))
    counts = Counter(lanes_of(groupings.partial_key("key"), _batch(key=[key] * rows), to, Sender()).tolist())
    after = waiting[0] + counts[active[low]], waiting[1] + counts[active[high]]
    assert sum(after) == sum(waiting) + rows
    if rows <= abs(waiting[0] - waiting[1]):
        shorter = low if waiting[0] < waiting[1] else high
        assert counts == {active[shorter]: rows}
    else:
        assert abs(after[0] - after[1]) <= 1


# -- the other groupings


@PATIENT
@given(rows=st.integers(0, 50), active=ACTIVE, sender=SENDERS)
def test_all_gives_every_lane_every_tuple(rows: int, active: tuple[int, ...], sender: Sender) -> None:
    batch = _numbers(rows)
    parts = split(groupings.all_, batch, Snapshot(active), sender)
    assert set(parts) == (set(active) if rows else set())
    assert all(part.equals(batch) for part in parts.values())


@PATIENT
@given(rows=st.integers(1, 50), active=ACTIVE, sender=SENDERS)
def test_global_gives_everything_to_the_first_active_lane(rows: int, active: tuple[int, ...], sender: Sender) -> None:
    parts = split(groupings.global_, _numbers(rows), Snapshot(active), sender)
    assert {lane: part.num_rows for lane, part in parts.items()} == {active[0]: rows}


@PATIENT
@given(rows=st.integers(1, 50), active=ACTIVE, sender=SENDERS)
def test_local_stays_in_the_senders_lane_when_that_is_active(
    rows: int, active: tuple[int, ...], sender: Sender
) -> None:
    parts = split(groupings.local, _numbers(rows), Snapshot(active), sender)
    (lane,) = parts
    assert parts[lane].num_rows == rows
    assert lane == sender.lane if sender.lane in active else lane in active


def test_local_senders_without_a_lane_of_their_number_are_shared_out() -> None:
    to = Snapshot((0, 1))
    lanes = [next(iter(split(groupings.local, _numbers(3), to, Sender(lane)))) for lane in range(6)]
    assert lanes == [0, 1, 0, 1, 0, 1]


@PATIENT
@given(numbers=st.lists(st.integers(0, 1000), min_size=1, max_size=50), active=ACTIVE)
def test_direct_counts_among_the_active_lanes(numbers: list[int], active: tuple[int, ...]) -> None:
    lanes = lanes_of(groupings.direct("to"), _batch(to=pa.array(numbers, pa.int32())), Snapshot(active), Sender())
    assert lanes.tolist() == [active[number % len(active)] for number in numbers]


@pytest.mark.parametrize(
    ("column", "got"),
    [
        (pa.array(["0", "1"]), "got string with 0 nulls"),
        (pa.array([0.0, 1.0]), "got double with 0 nulls"),
        (pa.array([0, None]), "got int64 with 1 nulls"),
        (pa.array([True, False]), "got bool with 0 nulls"),
    ],
)
def test_direct_says_what_it_wanted_when_the_column_names_no_replica(column: pa.Array, got: str) -> None:
    with pytest.raises(OperatorFailed) as caught:
        split(groupings.direct("to"), _batch(to=column), Snapshot((0, 1)), Sender())
    assert str(caught.value).startswith("grouping direct(to): expected a whole number in every row")
    assert got in str(caught.value)
    assert "fill the column with replica numbers from 0" in str(caught.value)


@PATIENT
@given(rows=st.integers(0, 500), active=ACTIVE, sender=SENDERS)
def test_shuffle_is_even_to_within_one_tuple(rows: int, active: tuple[int, ...], sender: Sender) -> None:
    counts = Counter(lanes_of(groupings.shuffle, _numbers(rows), Snapshot(active), sender).tolist())
    each = [counts[lane] for lane in active]
    assert sum(each) == rows
    assert max(each) - min(each) <= 1


@PATIENT
@given(rows=st.integers(1, 30), active=ACTIVE, first=st.integers(0, 1000), rounds=st.integers(1, 3))
def test_shuffle_is_even_over_the_turns_of_many_senders(
    rows: int, active: tuple[int, ...], first: int, rounds: int
) -> None:
    counts: Counter[int] = Counter()
    for turn in range(first, first + rounds * len(active)):
        counts.update(lanes_of(groupings.shuffle, _numbers(rows), Snapshot(active), Sender(turn=turn)).tolist())
    assert counts == dict.fromkeys(active, rows * rounds)


@PATIENT
@given(rows=st.integers(0, 100), active=ACTIVE, sender=SENDERS)
def test_none_is_shuffle(rows: int, active: tuple[int, ...], sender: Sender) -> None:
    to = Snapshot(active)
    one, other = (lanes_of(grouping, _numbers(rows), to, sender) for grouping in (groupings.none, groupings.shuffle))
    assert one.tolist() == other.tolist()


# -- split

SINGLE = [
    groupings.shuffle,
    groupings.none,
    groupings.fields("group"),
    groupings.fields("group", "id"),
    groupings.partial_key("group"),
    groupings.global_,
    groupings.local,
    groupings.direct("group"),
]


@pytest.mark.parametrize("grouping", SINGLE, ids=str)
@PATIENT
@given(
    groups=st.lists(st.integers(0, 9), min_size=1, max_size=80), active=ACTIVE, sender=SENDERS, at=st.integers(0, 79)
)
def test_split_loses_no_row_doubles_none_and_keeps_the_order_within_a_lane(
    grouping: Grouping, groups: list[int], active: tuple[int, ...], sender: Sender, at: int
) -> None:
    # A piece of a longer batch, as a task hands it on.
    batch = _batch(id=np.arange(len(groups)), group=groups, word=[f"w{n}" for n in groups]).slice(at % len(groups))
    to = Snapshot(active)
    parts = split(grouping, batch, to, sender)
    lanes = lanes_of(grouping, batch, to, sender).tolist()
    wanted: dict[int, list[dict[str, Any]]] = {}
    for row, lane in zip(batch.to_pylist(), lanes, strict=True):
        wanted.setdefault(lane, []).append(row)
    assert {lane: part.to_pylist() for lane, part in parts.items()} == wanted
    assert set(parts) <= set(active)
    assert all(type(lane) is int and part.schema == batch.schema for lane, part in parts.items())


@pytest.mark.parametrize("grouping", [*SINGLE, groupings.all_], ids=str)
def test_a_single_active_lane_gets_the_batch_as_it_is(grouping: Grouping) -> None:
    batch = _numbers(20)
    parts = split(grouping, batch, Snapshot((5,), (1000,)), Sender(3, 8))
    assert list(parts) == [5]
    assert parts[5].equals(batch)


@pytest.mark.parametrize("grouping", [*SINGLE, groupings.all_], ids=str)
def test_an_empty_batch_goes_nowhere(grouping: Grouping) -> None:
    assert split(grouping, _numbers(0), Snapshot((2, 4)), Sender()) == {}


@pytest.mark.parametrize("grouping", [*SINGLE, groupings.all_], ids=str)
def test_only_active_lanes_receive_whatever_their_numbers(grouping: Grouping) -> None:
    parts = split(grouping, _numbers(500), Snapshot((3, 11, 40)), Sender(11, 2))
    assert set(parts) <= {3, 11, 40}
    wanted = 1 if grouping.kind in ("global", "local") else 3
    assert len(parts) == wanted
