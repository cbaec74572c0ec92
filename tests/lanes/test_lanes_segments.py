"""Segments: what is written to a lane is read back, from memory or from its file, and damage is seen and named."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanes_on_disk import (
    HOST,
    KEPT,
    NUMBERED,
    PATIENT,
    A,
    B,
    Clock,
    flip_byte,
    numbered,
    segment_bytes,
    write,
    write_one,
)

from elastream.errors import Damaged, TopologyError
from elastream.lanes import LaneId, Store
from elastream.lanes import segment_files as files_module
from elastream.lanes.segment_files import BatchCache, SegmentReader, SegmentWriter
from elastream.lanes.segments import BATCH_BYTES, schema_id
from elastream.topology import parse_schema

_COLUMNS = pa.schema(
    [
        ("n", pa.int64()),
        ("s", pa.string()),
        ("l", pa.list_(pa.float64())),
        ("b", pa.bool_()),
        ("t", pa.timestamp("us", tz="UTC")),
    ]
)
_VALUES = st.fixed_dictionaries(
    {
        "n": st.integers(-(2**63), 2**63 - 1) | st.none(),
        "s": st.text(max_size=5) | st.none(),
        "l": st.lists(st.floats(allow_nan=False) | st.none(), max_size=3) | st.none(),
        "b": st.booleans() | st.none(),
        "t": st.integers(0, 2**50) | st.none(),
    }
)


@st.composite
def _pieces(draw: st.DrawFn) -> pa.RecordBatch:
    """A batch, often a piece of a longer one, as routing cuts them."""
    rows = draw(st.lists(_VALUES, max_size=8))
    batch = pa.RecordBatch.from_pylist(rows, schema=_COLUMNS)
    return batch.slice(draw(st.integers(0, len(rows))), draw(st.integers(0, 8)))


@pytest.fixture
def writer(store: Store) -> SegmentWriter:
    return SegmentWriter(store, HOST, appends=True, clock=Clock())


@PATIENT
@given(
    writes=st.lists(
        st.dictionaries(st.builds(LaneId, st.sampled_from("ab"), st.integers(0, 3)), st.lists(_pieces(), max_size=3)),
        max_size=3,
    ),
    appends=st.booleans(),
    cached=st.booleans(),
)
def test_slices_read_back_what_was_written_to_each_lane(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[dict[LaneId, list[pa.RecordBatch]]],
    appends: bool,
    cached: bool,
) -> None:
    store = Store(str(tmp_path_factory.mktemp("segments")))
    cache = BatchCache() if cached else None
    writer, reader = SegmentWriter(store, HOST, appends=appends, cache=cache), SegmentReader(store, cache)
    read: dict[LaneId, list[dict[str, Any]]] = {}
    expected: dict[LaneId, list[dict[str, Any]]] = {}
    names = set()
    for batches in writes:
        for operator, lane, piece in write(writer, batches, KEPT).appended:
            batch = reader.read(piece, _COLUMNS)
            assert batch.num_rows == piece.rows > 0
            assert piece.schema == schema_id(_COLUMNS)
            names.add(piece.segment)
            read.setdefault(LaneId(operator, lane), []).extend(batch.to_pylist())
        for lane_id, pieces in batches.items():
            rows = [row for piece in pieces for row in piece.to_pylist()]
            if rows:
                expected.setdefault(lane_id, []).extend(rows)
    writer.close()
    reader.close()
    assert read == expected
    assert names == set(segment_bytes(store))


def test_part_of_a_slice_reads_back_as_that_part(store: Store, writer: SegmentWriter) -> None:
    piece = write_one(writer, numbered(100, 50))
    part = SegmentReader(store).read(piece._replace(first=10, rows=5), NUMBERED)
    assert part.equals(numbered(110, 5))


def test_a_file_is_batches_one_after_another(store: Store, writer: SegmentWriter) -> None:
    first, second = write_one(writer, numbered(0, 5)), write_one(writer, numbered(5, 9))
    assert first.segment == second.segment == f"{HOST}-000001.arrow"
    assert (first.offset, second.offset) == (0, first.length)
    assert segment_bytes(store) == {first.segment: first.length + second.length}


def test_lanes_of_two_schemas_may_be_in_one_file(store: Store, writer: SegmentWriter) -> None:
    other = pa.RecordBatch.from_pydict({"x": [1.5]})
    written = write(writer, {A: [numbered(0, 2)], LaneId("c", 0): [other]})
    one, two = (a.slice for a in written.appended)
    assert one.segment == two.segment
    assert one.schema != two.schema
    reader = SegmentReader(store)
    assert reader.read(two, other.schema).equals(other)
    assert reader.read(one, NUMBERED).equals(numbered(0, 2))


def test_nothing_to_write_writes_nothing(store: Store, writer: SegmentWriter) -> None:
    written = write(writer, {A: [numbered(0, 0)], LaneId("a", 1): []})
    assert written == ([], [])
    assert segment_bytes(store) == {}


def test_a_big_lane_is_cut_into_batches_of_about_a_mebibyte(store: Store, writer: SegmentWriter) -> None:
    rows = 10 * BATCH_BYTES // 8
    batch = pa.RecordBatch.from_pydict({"id": np.arange(rows)})
    appended = write(writer, {A: [batch.slice(0, 1000), batch.slice(1000)]}).appended
    assert 9 <= len(appended) <= 11
    assert all(a.slice.length <= 1.1 * BATCH_BYTES for a in appended)
    reader = SegmentReader(store)
    read = [reader.read(a.slice, batch.schema) for a in appended]
    assert np.array_equal(pa.Table.from_batches(read).column("id").to_numpy(), np.arange(rows))


def test_a_column_with_a_dictionary_is_refused_early_or_can_be_read_back(store: Store, writer: SegmentWriter) -> None:
    declared = pa.schema([("word", pa.dictionary(pa.int32(), pa.string()))])
    try:
        schema = parse_schema(declared)
    except TopologyError:
        return
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b", "a"]).dictionary_encode()], schema=schema)
    assert SegmentReader(store).read(write_one(writer, batch), schema).to_pylist() == batch.to_pylist()


# -- the cache


def test_a_batch_that_was_just_written_is_read_from_memory_once(store: Store) -> None:
    cache = BatchCache()
    writer, reader = SegmentWriter(store, HOST, appends=True, cache=cache), SegmentReader(store, cache)
    batch = numbered(0, 10)
    piece = write_one(writer, batch)
    assert reader.read(piece._replace(rows=4), NUMBERED).equals(batch.slice(0, 4))
    assert reader.read(piece, NUMBERED) is batch
    # The lane is behind it now. Whoever asks again, because a work is repeated, gets it from the file.
    again = reader.read(piece, NUMBERED)
    assert again is not batch
    assert again.equals(batch)


def test_rows_that_are_kept_are_not_held_in_memory(store: Store) -> None:
    cache = BatchCache()
    writer, batch = SegmentWriter(store, HOST, appends=True, cache=cache), numbered(0, 10)
    assert SegmentReader(store, cache).read(write_one(writer, batch, B), NUMBERED) is not batch


@PATIENT
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 60), st.booleans()), max_size=40))
def test_the_cache_holds_the_newest_that_fit(operations: list[tuple[int, int, bool]]) -> None:
    cache, model = BatchCache(100), dict[tuple[str, int], tuple[pa.RecordBatch, int]]()
    for place, size, puts in operations:
        key, batch = ("s", place), numbered(size, 1)
        if puts:
            cache.put(key, batch, size)
            model[key] = batch, size
            while sum(bytes_of for _, bytes_of in model.values()) > 100:
                del model[next(iter(model))]
        else:
            cache.drop(key)
            model.pop(key, None)
        for at in range(6):
            found = model.get(("s", at))
            assert cache.get(("s", at)) is (found[0] if found else None)


# -- damage


@settings(PATIENT, max_examples=30)
@given(data=st.data())
def test_a_turned_byte_in_a_segment_is_seen_and_named_and_can_be_mended(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    base = tmp_path_factory.mktemp("turned")
    store = Store(str(base))
    writer, reader = SegmentWriter(store, HOST, appends=True), SegmentReader(store)
    pieces = [write_one(writer, numbered(20 * n, 20)) for n in range(3)]
    hit = data.draw(st.sampled_from(pieces))
    path = base / "segments" / hit.segment
    whole = flip_byte(path, data.draw(st.integers(hit.offset, hit.offset + hit.length - 1)))
    with pytest.raises(Damaged) as caught:
        reader.read(hit, NUMBERED)
    assert f"segment segments/{hit.segment} in {base}: bytes {hit.offset}.." in str(caught.value)
    assert "restore the file from a copy and start again" in str(caught.value)
    for n, piece in enumerate(pieces):
        if piece is not hit:
            assert reader.read(piece, NUMBERED).equals(numbered(20 * n, 20))
    path.write_bytes(whole)
    assert reader.read(hit, NUMBERED).equals(numbered(20 * pieces.index(hit), 20))
    writer.close()
    reader.close()


@pytest.mark.parametrize("left", [0, 100])
def test_a_segment_that_was_cut_short_is_damaged(store: Store, writer: SegmentWriter, left: int) -> None:
    pieces = [write_one(writer, numbered(0, 20)) for _ in range(2)]
    path = store.local_path / "segments" / pieces[0].segment
    path.write_bytes(path.read_bytes()[:left])
    for piece in pieces:
        with pytest.raises(Damaged, match=piece.segment):
            SegmentReader(store).read(piece, NUMBERED)


def test_a_segment_that_is_gone_is_damage_and_not_a_missing_file(store: Store, writer: SegmentWriter) -> None:
    piece = write_one(writer, numbered(0, 20))
    (store.local_path / "segments" / piece.segment).unlink()
    with pytest.raises(Damaged, match=f"{piece.segment} in .*: it is gone, but the ledger needs it; restore it"):
        SegmentReader(store).read(piece, NUMBERED)


def test_a_reader_holds_a_few_files_open_however_many_it_reads(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "OPEN_FILES", 3)
    writer, reader = SegmentWriter(store, HOST, appends=False), SegmentReader(store)
    pieces = [write_one(writer, numbered(n, 2)) for n in range(12)]
    for n in [*range(12), *range(12)]:
        assert reader.read(pieces[n], NUMBERED).equals(numbered(n, 2))
    assert _open_in(store) == {piece.segment for piece in pieces[-3:]}
    reader.close()
    assert _open_in(store) == set()


def _open_in(store: Store) -> set[str]:
    """The segments that this process has open."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(link.readlink())
    return {path.name for path in found if path.parent == store.local_path / "segments"}
