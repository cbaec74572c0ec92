"""Object stores that cannot be used, and secrets that no name or error tells."""

import re
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from lanes_on_disk import HOST, NUMBERED, Committing, numbered, write
from object_store import BUCKET, KEY, SECRET, address, flip_byte

from elastream.errors import BaseInUse, BaseUnusable, Damaged
from elastream.lanes import LaneId, Ledger, Store
from elastream.lanes.lease import BaseLease
from elastream.lanes.records import MAGIC
from elastream.lanes.segment_files import SegmentReader, SegmentWriter


@pytest.fixture
def store(uri: str) -> Store:
    return Store(uri)


def test_a_bucket_that_does_not_exist_is_unusable(endpoint: str) -> None:
    store = Store(address(endpoint, "never-made/run"))
    with pytest.raises(BaseUnusable, match=r"^base s3://never-made/run: cannot be written: "):
        BaseLease(store).acquire()


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
        BaseLease(Store(address(locked_endpoint, "lanes/run"))).acquire()


def test_the_name_of_a_store_does_not_tell_its_secrets(store: Store) -> None:
    assert str(store).startswith(f"s3://{BUCKET}/run-")
    assert SECRET not in str(store)
    assert KEY not in str(store)
    assert "?" not in str(store)


def test_no_error_tells_the_secrets(store: Store, uri: str, endpoint: str) -> None:
    def damaged_segment() -> None:
        writer = SegmentWriter(store, HOST, appends=False)
        ((_, _, piece),) = write(writer, {LaneId("a", 0): [numbered(0, 2)]}).appended
        store.delete([f"segments/{piece.segment}"])
        SegmentReader(store).read(piece, NUMBERED)

    def damaged_entry() -> None:
        Committing(store).run(1)
        flip_byte(store, "ledger/00000002-000000000000.entry", len(MAGIC) + 5)
        Ledger(store).load()

    def first_edition() -> None:
        old = Store(address(endpoint, f"{BUCKET}/old"))
        old.write("ledger/entry-000000000000.json", b"{}")
        Ledger(old).load()

    def taken_over() -> None:
        one, two = Ledger(store), Ledger(store)
        states = one.load(), two.load()
        one.begin(states[0])
        two.begin(states[1])

    def in_use() -> None:
        BaseLease(store).acquire()
        BaseLease(Store(uri)).acquire()

    def no_bucket() -> None:
        BaseLease(Store(address(endpoint, "never-made/run"))).acquire()

    for kind, fail in (
        (Damaged, damaged_segment),
        (BaseInUse, taken_over),
        (Damaged, damaged_entry),
        (Damaged, first_edition),
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
