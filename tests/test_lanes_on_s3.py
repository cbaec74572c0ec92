"""The same lanes on an object store: a server that speaks the S3 protocol on the loopback, and nothing mocked behind it."""

import numpy as np
import pyarrow as pa
import pytest
from lanes_on_disk import as_json, numbered
from object_store import flip_byte
from pyarrow import ipc

from elastream.errors import Damaged
from elastream.lanes import Appended, Cleanup, Entry, LaneId, Ledger, Store, audit
from elastream.lanes.cleanup import GRACE_TICKS
from elastream.lanes.ledger import ENTRIES_A_SNAPSHOT
from elastream.lanes.readers import acknowledge, acknowledged
from elastream.lanes.segments import encode_schema, read_slice, write_segments


@pytest.fixture
def store(uri: str) -> Store:
    return Store(uri)


class Base:
    """A base with real tuples, driven as the driver does."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ledger = Ledger(store)
        self.book = self.ledger.load()
        self.cleanup = Cleanup(store)

    def tick(self, entering: int = 4, scored: int = 4) -> None:
        tick = self.book.tick + 1
        scored = min(scored, self.book.queued("score"))
        appended, schemas = write_segments(self.store, tick, {LaneId("score", 0): [numbered(tick * 100, entering)]})
        entry = Entry(
            tick,
            "run",
            tick,
            float(tick),
            (("score", 0, scored),) if scored else (),
            tuple(appended),
            {key: encode_schema(schema) for key, schema in schemas.items()},
            {"read": {"entered": entering}, "score": {"finished": scored}},
        )
        freed = self.book.apply(entry)
        self.ledger.commit(entry)
        self.cleanup.after_commit(self.book, freed)
        self.ledger.tidy(self.book)


# -- files


def test_files_come_back_as_they_were_written(store: Store) -> None:
    assert not store.is_local
    assert store.sizes("ledger") == {}
    store.write("ledger/a", b"first")
    store.write("ledger/b", pa.py_buffer(b"0123456789"))
    store.write("ledger/a", b"again")
    assert store.read("ledger/a") == b"again"
    assert store.read_range("ledger/b", 3, 4).to_pybytes() == b"3456"
    assert store.sizes("ledger") == {"a": 5, "b": 10}
    assert store.exists("ledger/a")
    assert not store.exists("ledger/c")


def test_removing_what_is_gone_already_is_fine(store: Store) -> None:
    for name in "abc":
        store.write(f"segments/{name}", b"x")
    store.delete([f"segments/{name}" for name in "abxyz"])
    assert store.sizes("segments") == {"c": 1}
    store.delete([])
    store.remove_unfinished("segments")
    store.remove_unfinished("never-made")
    assert store.sizes("segments") == {"c": 1}


# -- segments


def test_slices_read_back_what_was_written_to_each_lane(store: Store) -> None:
    written = {
        LaneId("a", 0): [numbered(0, 5), numbered(5, 5)],
        LaneId("a", 3): [numbered(50, 40).slice(7, 20)],
        LaneId("b", 0): [pa.RecordBatch.from_pydict({"x": [1.5, None], "l": [[1, 2], None]})],
    }
    appended, schemas = write_segments(store, 2, written)
    read = {
        LaneId(a.operator, a.lane): read_slice(store, a.slice, schemas[a.slice.schema]).to_pylist() for a in appended
    }
    assert read == {lane: [row for piece in pieces for row in piece.to_pylist()] for lane, pieces in written.items()}
    assert {a.slice.segment for a in appended} == set(store.sizes("segments"))
    for name in store.sizes("segments"):
        with ipc.open_file(pa.py_buffer(store.read(f"segments/{name}"))) as file:
            assert file.num_record_batches >= 1


def test_a_big_lane_survives_in_pieces(store: Store) -> None:
    # Larger than the part in which an object store takes an upload.
    batch = pa.RecordBatch.from_pydict({"id": np.arange(1_600_000)})
    appended, schemas = write_segments(store, 0, {LaneId("a", 0): [batch]})
    assert len(appended) > 5
    ids = np.concatenate(
        [read_slice(store, a.slice, schemas[a.slice.schema]).column("id").to_numpy() for a in appended]
    )
    assert np.array_equal(ids, np.arange(1_600_000))


def test_damage_to_a_segment_is_seen_named_and_can_be_mended(store: Store) -> None:
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [numbered(0, 20)]})
    name = f"segments/{piece.segment}"
    whole = flip_byte(store, name, piece.offset + piece.length // 2)
    with pytest.raises(Damaged, match=f"segment {name} in {store}: bytes .* restore the file"):
        read_slice(store, piece, schemas[piece.schema])
    store.write(name, whole[: piece.offset + 10])
    with pytest.raises(Damaged, match=name):
        read_slice(store, piece, schemas[piece.schema])
    store.delete([name])
    with pytest.raises(Damaged, match=f"segment {name} in {store}: it is gone"):
        read_slice(store, piece, schemas[piece.schema])
    store.write(name, whole)
    assert read_slice(store, piece, schemas[piece.schema]).equals(numbered(0, 20))


# -- the ledger, clean-up, the audit


def test_the_ledger_is_loaded_as_it_was_committed_also_across_snapshots(store: Store) -> None:
    base = Base(store)
    base.tick(entering=5, scored=0)
    for _ in range(2 * ENTRIES_A_SNAPSHOT):
        base.tick(entering=0, scored=0)
    base.tick(entering=3, scored=4)
    books = sorted(name for name in store.sizes("ledger") if name.startswith("book-"))
    assert len(books) == 2
    assert len(store.sizes("ledger")) <= 2 + ENTRIES_A_SNAPSHOT + 2
    assert as_json(Ledger(store).load()) == as_json(base.book)
    flip_byte(store, f"ledger/{books[-1]}", 200)
    assert as_json(Ledger(store).load()) == as_json(base.book)
    assert audit(store).problems == ()


def test_the_store_holds_what_waits_and_a_few_ticks_more(store: Store) -> None:
    base = Base(store)
    for _ in range(2 * GRACE_TICKS):
        base.tick()
    # Each tick consumes the one before it, so that one waits and the grace is full.
    assert len(base.book.segments()) == 1
    assert len(store.sizes("segments")) == 1 + GRACE_TICKS
    assert base.book.segments() <= set(store.sizes("segments"))


def test_damage_to_the_ledger_is_seen_named_and_can_be_mended(store: Store) -> None:
    base = Base(store)
    for _ in range(6):
        base.tick()
    name = "ledger/entry-000000000003.json"
    whole = flip_byte(store, name, 150)
    with pytest.raises(Damaged, match=f"^{store}/{name}: "):
        Ledger(store).load()
    store.delete([name])
    with pytest.raises(Damaged, match="entry 3 is missing between 2 and 4"):
        Ledger(store).load()
    store.write(name, whole)
    assert as_json(Ledger(store).load()) == as_json(base.book)


def test_a_run_goes_on_where_another_stopped(store: Store, uri: str) -> None:
    base = Base(store)
    for _ in range(5):
        base.tick()
    again = Base(Store(uri))
    assert as_json(again.book) == as_json(base.book)
    again.tick()
    assert Ledger(store).has(5)
    assert Ledger(store).load().tick == 5


def test_the_sweep_takes_only_segments_of_committed_ticks_that_nothing_names(store: Store) -> None:
    base = Base(store)
    for _ in range(3):
        base.tick()
    named = base.book.segments()

    def written(tick: int) -> str:
        return write_segments(store, tick, {LaneId("score", 0): [numbered(0, 2)]})[0][0].slice.segment

    failed_attempt, in_flight = written(1), written(3)
    restarted = Cleanup(store)
    restarted.sweep(base.book)
    assert set(store.sizes("segments")) == named | {in_flight}
    assert failed_attempt not in named


def test_the_audit_finds_what_is_wrong(store: Store) -> None:
    base = Base(store)
    for _ in range(4):
        base.tick(entering=5, scored=3)
    healthy = audit(store)
    assert healthy.problems == ()
    assert (healthy.entered, healthy.finished, healthy.queued) == (20, 9, 11)
    piece = base.book.queue(LaneId("score", 0)).slices[-1]
    whole = flip_byte(store, f"segments/{piece.segment}", piece.offset + 8)
    (problem,) = audit(store).problems
    assert problem.startswith(f"score lane 0: segment segments/{piece.segment} in {store}")
    store.write(f"segments/{piece.segment}", whole)
    tick = base.book.tick + 1
    base.ledger.commit(Entry(tick, "run", tick, 0.0, appended=(Appended("score", 0, piece),)))
    problems = audit(store).problems
    assert any("named twice" in problem for problem in problems)
    assert any("entered 20 is not finished 9 + dropped 0 + queued 16" in problem for problem in problems)


def test_readers_say_how_far_they_have_come(store: Store) -> None:
    assert acknowledged(store, "table") is None
    acknowledge(store, "table", "one", 30)
    acknowledge(store, "table", "two", 12)
    assert acknowledged(store, "table") == 12
