"""The same lanes on an object store: a server that speaks the S3 protocol on the loopback, and nothing mocked behind it."""

import numpy as np
import pyarrow as pa
import pytest
from lanes_on_disk import HOST, NUMBERED, Clock, Committing, Scoring, entry_of, numbered, told, write
from object_store import flip_byte

from elastream.errors import BaseInUse, Damaged
from elastream.lanes import Appended, Entry, LaneId, Ledger, LedgerState, OperatorCounts, Slice, Store, audit
from elastream.lanes import ledger as ledger_module
from elastream.lanes.cleanup import GRACE_S, SegmentCleanup
from elastream.lanes.ledger import LedgerReader
from elastream.lanes.readers import OutputReader, acknowledge, acknowledged, read_output
from elastream.lanes.records import MAGIC
from elastream.lanes.segment_files import BatchCache, SegmentReader, SegmentWriter


@pytest.fixture
def store(uri: str) -> Store:
    return Store(uri)


@pytest.fixture
def few_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new log after a few entries."""
    monkeypatch.setattr(ledger_module, "LEAST_OBJECTS", 4)


def _names(store: Store, kind: str) -> list[str]:
    return sorted(name for name in store.sizes("ledger") if name.endswith(kind))


# -- files


def test_files_come_back_as_they_were_written(store: Store) -> None:
    assert not store.is_local
    assert store.sizes("ledger") == {}
    store.write("ledger/a", b"first")
    store.write("ledger/b", pa.py_buffer(b"0123456789"))
    store.write("ledger/a", b"again")
    assert store.read("ledger/a") == b"again"
    assert store.read_range("ledger/b", 3, 4).to_pybytes() == b"3456"
    assert store.read_range("ledger/b", 8, 4).to_pybytes() == b"89"
    assert store.read_range("ledger/b", 12, 4).to_pybytes() == b""
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


def test_a_file_that_is_there_is_not_written_again(store: Store) -> None:
    assert store.write_new("ledger/x", b"first")
    assert not store.write_new("ledger/x", b"second")
    assert store.read("ledger/x") == b"first"


def test_several_files_are_read_in_the_order_in_which_they_were_asked_for(store: Store) -> None:
    names = [f"ledger/{n}" for n in range(20)]
    for name in names:
        store.write(name, name.encode())
    assert store.read_many(names[::-1]) == [name.encode() for name in names[::-1]]
    assert store.read_many([]) == []
    with pytest.raises(FileNotFoundError):
        store.read_many([*names, "ledger/never-was"])


def test_a_small_file_is_one_request(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="werkzeug"):
        store.write("ledger/x", b"data")
    asked = [message for message in caplog.messages if "/ledger/x" in message]
    assert len(asked) == 1
    assert "PUT" in asked[0]


# -- segments


def _written(store: Store, batches: dict[LaneId, list[pa.RecordBatch]], prefix: str = HOST) -> list[Appended]:
    return write(SegmentWriter(store, prefix, appends=False), batches).appended


def test_slices_read_back_what_was_written_to_each_lane(store: Store) -> None:
    other = pa.RecordBatch.from_pydict({"x": [1.5, None], "l": [[1, 2], None]})
    written = {
        LaneId("a", 0): [numbered(0, 5), numbered(5, 5)],
        LaneId("a", 3): [numbered(50, 40).slice(7, 20)],
        LaneId("b", 0): [other],
    }
    cache = BatchCache()
    writer = SegmentWriter(store, HOST, appends=False, cache=cache)
    appended = write(writer, written, frozenset({"b"})).appended
    for reader in (SegmentReader(store, cache), SegmentReader(store)):
        read = {
            LaneId(a.operator, a.lane): reader.read(
                a.slice, other.schema if a.operator == "b" else NUMBERED
            ).to_pylist()
            for a in appended
        }
        assert read == {
            lane: [row for piece in pieces for row in piece.to_pylist()] for lane, pieces in written.items()
        }
    assert {a.slice.segment for a in appended} == set(store.sizes("segments"))
    assert len(store.sizes("segments")) == 2


def test_a_big_lane_survives_in_pieces(store: Store) -> None:
    # Larger than the part in which an object store takes an upload.
    batch = pa.RecordBatch.from_pydict({"id": np.arange(1_600_000)})
    appended = _written(store, {LaneId("a", 0): [batch]})
    assert len(appended) > 5
    reader = SegmentReader(store)
    ids = np.concatenate([reader.read(a.slice, batch.schema).column("id").to_numpy() for a in appended])
    assert np.array_equal(ids, np.arange(1_600_000))


def test_damage_to_a_segment_is_seen_named_and_can_be_mended(store: Store) -> None:
    lanes = {LaneId("a", n): [numbered(0, 20)] for n in range(2)}
    first, second = (a.slice for a in _written(store, lanes))
    name = f"segments/{first.segment}"
    reader = SegmentReader(store)

    def is_damaged(piece: Slice, message: str) -> None:
        with pytest.raises(Damaged, match=f"segment {name} in {store}: {message}"):
            reader.read(piece, NUMBERED)

    whole = flip_byte(store, name, second.offset + second.length // 2)
    is_damaged(second, "bytes .* restore the file")
    assert reader.read(first, NUMBERED).equals(numbered(0, 20))
    # Cut short: within the first, so that the second is wholly behind the end.
    store.write(name, whole[:10])
    is_damaged(first, "bytes .* restore the file")
    is_damaged(second, "bytes .* restore the file")
    store.delete([name])
    is_damaged(first, "it is gone")
    store.write(name, whole)
    assert reader.read(second, NUMBERED).equals(numbered(0, 20))


# -- the ledger


@pytest.mark.usefixtures("few_objects")
def test_the_ledger_is_loaded_as_it_was_committed_across_logs_and_restarts(store: Store, uri: str) -> None:
    assert told(Ledger(store).load()) == told(LedgerState())
    state = LedgerState()
    for entries in (1, 0, 9, 3, 5):
        driver = Committing(Store(uri))
        assert told(driver.state) == told(state)
        state = driver.run(entries).state
    assert state.entry == 17
    assert told(Ledger(store).load()) == told(state)


@pytest.mark.usefixtures("few_objects")
def test_entries_are_objects_and_old_ones_are_removed(store: Store) -> None:
    driver = Committing(store).run(3)
    assert _names(store, ".log") == ["00000001-000000000000.log"]
    assert _names(store, ".entry") == [f"00000001-{n:012d}.entry" for n in range(3)]
    driver.run(16)
    # A log at every fourth; the last two are kept, and what is behind the older.
    assert _names(store, ".log") == ["00000001-000000000012.log", "00000001-000000000016.log"]
    assert _names(store, ".entry") == [f"00000001-{n:012d}.entry" for n in range(12, 19)]
    assert [entry.number for entry in driver.ledger.entries()] == list(range(12, 19))
    # A new epoch is one more log.
    Committing(store)
    assert _names(store, ".log") == ["00000001-000000000016.log", "00000002-000000000019.log"]
    assert _names(store, ".entry") == [f"00000001-{n:012d}.entry" for n in range(16, 19)]


@pytest.mark.usefixtures("few_objects")
def test_a_damaged_snapshot_falls_back_to_the_one_before(store: Store) -> None:
    driver = Committing(store).run(10)
    older, newest = _names(store, ".log")
    flip_byte(store, f"ledger/{newest}", len(MAGIC) + 40)
    assert told(Ledger(store).load()) == told(driver.state)
    again = Committing(store)
    assert told(again.state) == told(driver.state)
    # The damaged one does not count as the one that is kept.
    assert older in _names(store, ".log")
    flip_byte(store, f"ledger/{_names(store, '.log')[-1]}", len(MAGIC) + 40)
    assert told(Ledger(store).load()) == told(driver.state)


def test_damage_to_an_entry_is_seen_named_and_can_be_mended(store: Store) -> None:
    driver = Committing(store).run(6)
    name = "ledger/00000001-000000000003.entry"
    whole = store.read(name)
    for at in (0, len(MAGIC), len(MAGIC) + 9, len(whole) - 1):
        flip_byte(store, name, at)
        with pytest.raises(Damaged, match=f"^{store}/{name}: .* restore the file"):
            Ledger(store).load()
        store.write(name, whole)
    store.delete([name])
    with pytest.raises(Damaged, match="entry 3 is missing before 4"):
        Ledger(store).load()
    store.write(name, whole)
    assert told(Ledger(store).load()) == told(driver.state)


def test_what_a_driver_that_was_cut_off_writes_is_never_read(store: Store) -> None:
    old = Committing(store).run(3)
    new = Committing(store)
    for number in range(3, 6):
        old.ledger.commit(entry_of(number, appended=7))
    assert told(Ledger(store).load()) == told(new.state)
    new.run(1)
    assert told(Ledger(store).load()) == told(new.state)
    assert [len(entry.appended) for entry in Ledger(store).entries()] == [2, 2, 2, 2]
    flip_byte(store, f"ledger/{_names(store, '.log')[-1]}", len(MAGIC) + 40)
    assert told(Ledger(store).load()) == told(new.state)


@pytest.mark.usefixtures("few_objects")
def test_a_driver_that_was_cut_off_stops_before_it_begins_another_log(store: Store) -> None:
    old, one, two = Committing(store), Ledger(store), Ledger(store)
    states = one.load(), two.load()
    one.begin(states[0])
    with pytest.raises(BaseInUse):
        two.begin(states[1])
    with pytest.raises(BaseInUse, match="another driver has taken it over"):
        old.run(4)


def test_nothing_is_committed_before_the_driver_has_taken_over(store: Store) -> None:
    with pytest.raises(ValueError, match=r"call begin\(\) before commit\(\)"):
        Ledger(store).commit(entry_of(0))
    assert store.sizes("ledger") == {}


class Counted(Store):
    """A store that counts what is read of it."""

    reads = 0

    def read(self, name: str) -> bytes:
        self.reads += 1
        return super().read(name)


@pytest.mark.usefixtures("few_objects")
def test_a_reader_follows_and_reads_only_what_is_new(store: Store, uri: str) -> None:
    counted = Counted(uri)
    reader = LedgerReader(counted)
    assert told(reader.refresh()) == told(LedgerState())
    driver = Committing(store)
    for _ in range(11):
        before = counted.reads
        driver.run(1)
        assert told(reader.refresh()) == told(driver.state)
        # One entry, or the snapshot of a new log.
        assert counted.reads - before <= 2
    driver.run(9)
    assert told(reader.refresh()) == told(driver.state)
    driver = Committing(store).run(1)
    assert told(reader.refresh()) == told(driver.state)
    before = counted.reads
    reader.refresh()
    assert counted.reads == before


def test_a_base_of_the_first_edition_is_refused(store: Store) -> None:
    store.write("ledger/entry-000000000000.json", b"{}")
    with pytest.raises(Damaged, match=rf"^base {store}: was written by Elastream 0\.1"):
        Ledger(store).load()


# -- clean-up, the audit, readers


def test_the_store_holds_what_waits_and_a_few_seconds_more(store: Store) -> None:
    clock = Clock()
    driver = Scoring(store, clock=clock)
    for _ in range(8):
        clock.now += GRACE_S / 2
        driver.tick(entering=4, scored=4 if driver.state.entry >= 0 else 0)
    waits = driver.state.segments()
    assert waits <= set(store.sizes("segments"))
    # Each tick consumes what the one before it wrote, and two ticks are as long as the grace.
    assert len(set(store.sizes("segments")) - waits) == 2
    clock.now += GRACE_S
    driver.cleanup.after_commit(driver.state, [], [], 0)
    assert set(store.sizes("segments")) == waits


def test_the_sweep_takes_only_what_nothing_names_and_nobody_writes(store: Store) -> None:
    driver = Scoring(store)
    driver.tick(entering=4, scored=0)
    named = driver.state.segments()

    def written(prefix: str) -> str:
        return _written(store, {LaneId("score", 0): [numbered(0, 2)]}, prefix)[0].slice.segment

    for prefix in ("h0000000000d", "000000000000-aaaa"):
        written(prefix)
    live, runs = written("h0000000000b"), written("000000000001-bbbb")
    cleanup = SegmentCleanup(store)
    cleanup.host_came("h0000000000b")
    assert cleanup.sweep(driver.state, spare_from=1) == 2
    assert set(store.sizes("segments")) == named | {live, runs}


def test_the_audit_finds_what_is_wrong(store: Store) -> None:
    driver = Scoring(store)
    driver.tick(entering=5, scored=0)
    for _ in range(3):
        driver.tick(entering=5, scored=3)
    healthy = audit(store)
    assert healthy.problems == ()
    assert (healthy.entered, healthy.finished, healthy.queued, healthy.kept) == (40, 18, 22, 18)
    piece = driver.state.queue(LaneId("score", 0)).slices[-1]
    whole = flip_byte(store, f"segments/{piece.segment}", piece.offset + 8)
    (problem,) = audit(store).problems
    assert problem.startswith(f"score lane 0: segment segments/{piece.segment} in {store}")
    store.write(f"segments/{piece.segment}", whole)
    driver.commit(Entry(4, 0.0, appended=[Appended("score", 0, piece)], counts={"read": OperatorCounts(entered=1)}))
    assert audit(store).problems == (
        "1 slices are named twice",
        "entered 41 is not finished 18 + dropped 0 + queued 27",
    )


def test_readers_say_how_far_they_have_come(store: Store) -> None:
    assert acknowledged(store, "table") is None
    acknowledge(store, "table", "one", 30)
    acknowledge(store, "table", "two", 12)
    assert acknowledged(store, "table") == 12


def test_an_output_is_read(store: Store) -> None:
    reader = OutputReader(store)
    assert reader.backlog("table").slices == ()
    driver = Scoring(store)
    driver.tick(entering=5, scored=0)
    driver.tick(entering=0, scored=2)
    assert (reader.backlog("table").first, reader.backlog("table").stop) == (0, 4)
    assert read_output(store, "table").column("id").to_pylist() == [0, 1, 2, 3]
