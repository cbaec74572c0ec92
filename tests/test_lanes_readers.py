"""Readers of outputs: how far they have come, and that they see only what is committed."""

from lanes_on_disk import numbered, rows_of

from elastream.lanes import Book, Entry, LaneId, Ledger, Store
from elastream.lanes.readers import Follower, acknowledge, acknowledged
from elastream.lanes.segments import encode_schema, write_segments


def test_an_output_is_kept_until_its_slowest_reader_has_it(store: Store) -> None:
    assert acknowledged(store, "table") is None
    acknowledge(store, "table", "dashboard", 40)
    acknowledge(store, "table", "archive", 15)
    assert acknowledged(store, "table") == 15
    acknowledge(store, "table", "archive", 90)
    assert acknowledged(store, "table") == 40
    assert acknowledged(store, "another") is None


def test_a_reader_sees_only_what_is_committed(store: Store) -> None:
    ledger, book = Ledger(store), Book()
    appended, schemas = write_segments(store, 0, {LaneId("table", 0): [numbered(0, 10)]})
    assert Follower(store).waiting("table").slices == ()
    texts = {key: encode_schema(schema) for key, schema in schemas.items()}
    for entry in (
        Entry(0, "run", 0, 0.0, (), tuple(appended), texts),
        Entry(1, "run", 1, 0.0, (("table", 0, 4),)),
    ):
        ledger.commit(entry)
        book.apply(entry)
    seen = Follower(store).waiting("table")
    assert (seen.first, seen.stop, seen.schemas) == (4, 10, texts)
    assert rows_of(list(seen.slices)) == rows_of(list(book.queue(LaneId("table", 0)).slices))
