"""The same lanes on an object store: a server that speaks the S3 protocol on the loopback, and nothing mocked behind it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from object_store import BUCKET, KEY, SECRET, address, object_store
from pyarrow import ipc

from elastream.errors import BaseInUse, BaseUnusable, Damaged
from elastream.lanes import Appended, Book, Cleanup, Entry, Hold, LaneId, Ledger, Store, audit
from elastream.lanes.cleanup import GRACE_TICKS
from elastream.lanes.hold import LEASE_S
from elastream.lanes.ledger import ENTRIES_A_SNAPSHOT
from elastream.lanes.readers import acknowledge, acknowledged
from elastream.lanes.sealed import seal, unseal
from elastream.lanes.segments import encode_schema, read_slice, write_segments

_FOLDERS = count()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with object_store() as place:
        yield place


@pytest.fixture
def uri(endpoint: str) -> str:
    return address(endpoint, f"{BUCKET}/run-{next(_FOLDERS)}")


@pytest.fixture
def store(uri: str) -> Store:
    return Store(uri)


def _numbers(first: int, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": np.arange(first, first + rows), "word": [f"w{n}" for n in range(rows)]})


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
        appended, schemas = write_segments(self.store, tick, {LaneId("score", 0): [_numbers(tick * 100, entering)]})
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


def _as_json(book: Book) -> object:
    return json.loads(json.dumps(book.to_json()))


def _flip(store: Store, name: str, at: int) -> bytes:
    """Turn one byte of an object; gives what it was."""
    whole = store.read(name)
    store.write(name, whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    return whole


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
        LaneId("a", 0): [_numbers(0, 5), _numbers(5, 5)],
        LaneId("a", 3): [_numbers(50, 40).slice(7, 20)],
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
    ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [_numbers(0, 20)]})
    name = f"segments/{piece.segment}"
    whole = _flip(store, name, piece.offset + piece.length // 2)
    with pytest.raises(Damaged, match=f"segment {name} in {store}: bytes .* restore the file"):
        read_slice(store, piece, schemas[piece.schema])
    store.write(name, whole[: piece.offset + 10])
    with pytest.raises(Damaged, match=name):
        read_slice(store, piece, schemas[piece.schema])
    store.delete([name])
    with pytest.raises(Damaged, match=f"segment {name} in {store}: it is gone"):
        read_slice(store, piece, schemas[piece.schema])
    store.write(name, whole)
    assert read_slice(store, piece, schemas[piece.schema]).equals(_numbers(0, 20))


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
    assert _as_json(Ledger(store).load()) == _as_json(base.book)
    _flip(store, f"ledger/{books[-1]}", 200)
    assert _as_json(Ledger(store).load()) == _as_json(base.book)
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
    whole = _flip(store, name, 150)
    with pytest.raises(Damaged, match=f"^{store}/{name}: "):
        Ledger(store).load()
    store.delete([name])
    with pytest.raises(Damaged, match="entry 3 is missing between 2 and 4"):
        Ledger(store).load()
    store.write(name, whole)
    assert _as_json(Ledger(store).load()) == _as_json(base.book)


def test_a_run_goes_on_where_another_stopped(store: Store, uri: str) -> None:
    base = Base(store)
    for _ in range(5):
        base.tick()
    again = Base(Store(uri))
    assert _as_json(again.book) == _as_json(base.book)
    again.tick()
    assert Ledger(store).has(5)
    assert Ledger(store).load().tick == 5


def test_the_sweep_takes_only_segments_of_committed_ticks_that_nothing_names(store: Store) -> None:
    base = Base(store)
    for _ in range(3):
        base.tick()
    named = base.book.segments()

    def written(tick: int) -> str:
        return write_segments(store, tick, {LaneId("score", 0): [_numbers(0, 2)]})[0][0].slice.segment

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
    whole = _flip(store, f"segments/{piece.segment}", piece.offset + 8)
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


# -- the hold


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_second_driver_is_refused_while_the_lease_runs(store: Store, uri: str) -> None:
    clock = Clock()
    Hold(store, clock).take()
    clock.now += LEASE_S - 0.1
    with pytest.raises(BaseInUse) as caught:
        Hold(Store(uri), clock).take()
    assert str(caught.value).startswith(f"base {store}: in use by ")
    assert f'"pid": {os.getpid()}' in str(caught.value)
    assert "wait 30 s if it has died" in str(caught.value)


def test_a_lease_that_ran_out_is_taken_over_and_the_old_driver_stops_before_it_writes(store: Store, uri: str) -> None:
    clock = Clock()
    old, new = Hold(store, clock), Hold(Store(uri), clock)
    old.take()
    clock.now += LEASE_S
    new.take()
    with pytest.raises(BaseInUse, match="has taken it over; this driver stops before it writes"):
        old.renew()
    clock.now += LEASE_S / 2
    new.renew()
    clock.now += LEASE_S - 0.1
    with pytest.raises(BaseInUse):
        Hold(Store(uri), clock).take()


def test_the_driver_that_was_replaced_does_not_give_the_base_away_when_it_closes(store: Store, uri: str) -> None:
    clock = Clock()
    old, new = Hold(store, clock), Hold(Store(uri), clock)
    old.take()
    clock.now += LEASE_S
    new.take()
    with pytest.raises(BaseInUse):
        old.renew()
    old.release()
    with pytest.raises(BaseInUse):
        Hold(Store(uri), clock).take()


def test_a_driver_that_was_refused_does_not_give_the_base_away_either(store: Store, uri: str) -> None:
    clock = Clock()
    Hold(store, clock).take()
    for _ in range(2):
        refused = Hold(Store(uri), clock)
        with pytest.raises(BaseInUse):
            refused.take()
        refused.release()


def test_renewing_keeps_the_lease_and_does_not_write_at_every_tick(store: Store, uri: str) -> None:
    clock = Clock()
    hold = Hold(store, clock)
    hold.take()
    written = set()
    for _ in range(50):
        clock.now += 1.0
        hold.renew()
        written.add(store.read("lease.json"))
        with pytest.raises(BaseInUse):
            Hold(Store(uri), clock).take()
    assert 4 <= len(written) <= 6


def test_a_released_base_can_be_taken_at_once(store: Store, uri: str) -> None:
    clock = Clock()
    hold = Hold(store, clock)
    hold.take()
    hold.release()
    assert not store.exists("lease.json")
    Hold(Store(uri), clock).take()


def test_a_lease_from_another_machine_is_believed_until_it_runs_out(store: Store) -> None:
    clock = Clock()
    # A number that no process here has, on a host that is not this one.
    who = json.dumps({"host": "far-away", "pid": 2**22 + 1})
    store.write("lease.json", seal("lease", {"owner": "x", "who": who, "renewed_s": clock.now}))
    with pytest.raises(BaseInUse, match="far-away"):
        Hold(store, clock).take()
    clock.now += LEASE_S
    Hold(store, clock).take()
    assert json.loads(unseal("lease", store.read("lease.json"), "lease")["who"])["pid"] == os.getpid()


_HOLDER = """
import sys
from elastream.lanes import Hold, Store
Hold(Store(sys.stdin.readline().strip())).take()
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_holds_the_base_until_it_is_killed(store: Store, uri: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdin.write(uri + "\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BaseInUse, match=f'"pid": {holder.pid}'):
            Hold(store).take()
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        # It was a process of this machine, so there is no need to wait for its lease.
        Hold(store).take()
        with pytest.raises(BaseInUse, match=f'"pid": {os.getpid()}'):
            Hold(Store(uri)).take()


# -- bases that cannot be used, and secrets


def test_a_bucket_that_does_not_exist_is_unusable(endpoint: str) -> None:
    store = Store(address(endpoint, "never-made/run"))
    with pytest.raises(BaseUnusable, match=r"^base s3://never-made/run: cannot be written: "):
        Hold(store).take()


@pytest.fixture
def locked_endpoint() -> Iterator[str]:
    """A server that refuses everyone, as one does whose keys have been withdrawn."""

    class Refuse(BaseHTTPRequestHandler):
        def refuse(self) -> None:
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = refuse  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Refuse)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_store_that_lets_nobody_in_is_unusable(locked_endpoint: str) -> None:
    with pytest.raises(BaseUnusable, match=r"^base s3://lanes/run: "):
        Hold(Store(address(locked_endpoint, "lanes/run"))).take()


def test_the_name_of_a_store_does_not_tell_its_secrets(store: Store) -> None:
    assert str(store).startswith(f"s3://{BUCKET}/run-")
    assert SECRET not in str(store)
    assert KEY not in str(store)
    assert "?" not in str(store)


def test_no_error_tells_the_secrets(store: Store, uri: str, endpoint: str) -> None:
    def damaged_segment() -> None:
        ((_, _, piece),), schemas = write_segments(store, 0, {LaneId("a", 0): [_numbers(0, 2)]})
        store.delete([f"segments/{piece.segment}"])
        read_slice(store, piece, schemas[piece.schema])

    def damaged_entry() -> None:
        Ledger(store).commit(Entry(0, "run", 0, 0.0))
        _flip(store, "ledger/entry-000000000000.json", 5)
        Ledger(store).load()

    def in_use() -> None:
        Hold(store).take()
        Hold(Store(uri)).take()

    def no_bucket() -> None:
        Hold(Store(address(endpoint, "never-made/run"))).take()

    for kind, fail in (
        (Damaged, damaged_segment),
        (Damaged, damaged_entry),
        (BaseInUse, in_use),
        (BaseUnusable, no_bucket),
    ):
        with pytest.raises(kind) as caught:
            fail()
        told = "".join(traceback.format_exception(caught.value))
        assert SECRET not in told
        assert KEY not in told


@pytest.mark.parametrize(
    "address",
    [
        "s3://AKIA77:hu sh@lanes/run",
        "s3://AKIA77:hu/sh@lanes/run",
        "s3://AKIA77:hu@sh@lanes/run",
        "s3://AKIA77:hush@lanes/run?nonsense=1",
        "nosuch://AKIA77:hush@lanes/run",
    ],
)
def test_an_address_that_cannot_be_opened_is_refused_without_its_secrets(address: str) -> None:
    with pytest.raises(BaseUnusable) as caught:
        Store(address)
    # The whole of what a terminal would show, with the errors that led to this one.
    told = "".join(traceback.format_exception(caught.value))
    assert "AKIA77" not in told
    assert not re.search(r"hu.?sh|sh@", told)
