"""Segments: what is written to a lane is read back, and damage is seen and named."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanes_on_disk import PATIENT, flip_byte, numbered
from pyarrow import ipc

from elastream.errors import Damaged, TopologyError
from elastream.lanes import LaneId, Store
from elastream.lanes.segments import BATCH_BYTES, read_slice, write_segments
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


@PATIENT
@given(
    written=st.dictionaries(
        st.builds(LaneId, st.sampled_from("ab"), st.integers(0, 3)), st.lists(_pieces(), max_size=4)
    )
)
def test_slices_read_back_what_was_written_to_each_lane(
    tmp_path_factory: pytest.TempPathFactory, written: dict[LaneId, list[pa.RecordBatch]]
) -> None:
    store = Store(str(tmp_path_factory.mktemp("segments")))
    appended, schemas = write_segments(store, 7, written)
    read: dict[LaneId, list[dict[str, Any]]] = {}
    for operator, lane, piece in appended:
        batch = read_slice(store, piece, schemas[piece.schema])
        assert batch.num_rows == piece.rows > 0
        read.setdefault(LaneId(operator, lane), []).extend(batch.to_pylist())
    assert read == {
        lane: rows
        for lane, pieces in written.items()
        if (rows := [row for piece in pieces for row in piece.to_pylist()])
    }
    assert {a.slice.segment for a in appended} == set(store.sizes("segments"))


def test_part_of_a_slice_reads_back_as_that_part(store: Store) -> None:
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [numbered(100, 50)]})
    part = read_slice(store, piece._replace(first=10, rows=5), schemas[piece.schema])
    assert part.equals(numbered(110, 5))


def test_a_segment_is_an_arrow_file_that_any_reader_opens(store: Store, tmp_path: Path) -> None:
    appended, _ = write_segments(
        store,
        3,
        {LaneId("a", 0): [numbered(0, 5), numbered(5, 5)], LaneId("a", 1): [numbered(90, 2)], LaneId("b", 0): []},
    )
    (segment,) = {a.slice.segment for a in appended}
    assert segment.startswith("000000000003-")
    with ipc.open_file(str(tmp_path / "base" / "segments" / segment)) as file:
        assert file.schema == numbered(0, 1).schema
        batches = [file.get_batch(at) for at in range(file.num_record_batches)]
    assert [batch.to_pylist() for batch in batches] == [numbered(0, 10).to_pylist(), numbered(90, 2).to_pylist()]
    assert [(a.operator, a.lane, a.slice.rows) for a in appended] == [("a", 0, 10), ("a", 1, 2)]


def test_tuples_of_two_schemas_go_to_two_segments(store: Store) -> None:
    other = pa.RecordBatch.from_pydict({"x": [1.5]})
    appended, schemas = write_segments(store, 0, {LaneId("a", 0): [numbered(0, 2)], LaneId("b", 0): [other]})
    assert len({a.slice.segment for a in appended}) == len(schemas) == len(store.sizes("segments")) == 2
    assert read_slice(store, appended[1].slice, schemas[appended[1].slice.schema]).equals(other)


def test_nothing_to_write_writes_nothing(store: Store) -> None:
    assert write_segments(store, 0, {LaneId("a", 0): [numbered(0, 0)], LaneId("a", 1): []}) == ([], {})
    assert store.sizes("segments") == {}


def test_a_big_lane_is_cut_into_batches_of_about_a_mebibyte(store: Store) -> None:
    rows = 10 * BATCH_BYTES // 8
    batch = pa.RecordBatch.from_pydict({"id": np.arange(rows)})
    appended, schemas = write_segments(store, 0, {LaneId("a", 0): [batch.slice(0, 1000), batch.slice(1000)]})
    assert 9 <= len(appended) <= 11
    assert all(a.slice.length <= 1.1 * BATCH_BYTES for a in appended)
    read = [read_slice(store, a.slice, schemas[a.slice.schema]) for a in appended]
    assert pa.Table.from_batches(read).column("id").to_numpy().tolist() == list(range(rows))


def test_a_column_with_a_dictionary_is_refused_early_or_can_be_read_back(store: Store) -> None:
    declared = pa.schema([("word", pa.dictionary(pa.int32(), pa.string()))])
    try:
        schema = parse_schema(declared)
    except TopologyError:
        return
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b", "a"]).dictionary_encode()], schema=schema)
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [batch]})
    assert read_slice(store, piece, schemas[piece.schema]).to_pylist() == batch.to_pylist()


# -- damage


@settings(PATIENT, max_examples=30)
@given(data=st.data())
def test_a_turned_byte_in_a_segment_is_seen_and_named_and_can_be_mended(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    base = tmp_path_factory.mktemp("turned")
    store = Store(str(base))
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [numbered(0, 20)]})
    path = base / "segments" / piece.segment
    whole = flip_byte(path, data.draw(st.integers(piece.offset, piece.offset + piece.length - 1)))
    with pytest.raises(Damaged) as caught:
        read_slice(store, piece, schemas[piece.schema])
    assert f"segment segments/{piece.segment} in {base}" in str(caught.value)
    assert "restore the file from a copy and start again" in str(caught.value)
    path.write_bytes(whole)
    assert read_slice(store, piece, schemas[piece.schema]).equals(numbered(0, 20))


@pytest.mark.parametrize("left", [0, 100])
def test_a_segment_that_was_cut_short_is_damaged(store: Store, tmp_path: Path, left: int) -> None:
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [numbered(0, 20)]})
    path = tmp_path / "base" / "segments" / piece.segment
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(Damaged, match=piece.segment):
        read_slice(store, piece, schemas[piece.schema])


def test_a_segment_that_is_gone_is_damage_and_not_a_missing_file(store: Store, tmp_path: Path) -> None:
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [numbered(0, 20)]})
    (tmp_path / "base" / "segments" / piece.segment).unlink()
    with pytest.raises(Damaged, match=f"{piece.segment} in .*: it is gone, but tuples of it wait; restore it"):
        read_slice(store, piece, schemas[piece.schema])
