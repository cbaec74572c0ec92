"""Readers of outputs: how far they have come, and that they see only what is committed."""

import pytest
from lanes_on_disk import Scoring, numbered, rows_of, write

from elastream.errors import Damaged
from elastream.lanes import Entry, LaneId, Store
from elastream.lanes.readers import OutputReader, acknowledge, acknowledged, read_output
from elastream.lanes.segments import encode_schema


def test_an_output_is_kept_until_its_slowest_reader_has_it(store: Store) -> None:
    assert acknowledged(store, "table") is None
    acknowledge(store, "table", "dashboard", 40)
    acknowledge(store, "table", "archive", 15)
    assert acknowledged(store, "table") == 15
    acknowledge(store, "table", "archive", 90)
    assert acknowledged(store, "table") == 40
    assert acknowledged(store, "another") is None


def test_a_reader_sees_only_what_is_committed(store: Store) -> None:
    reader = OutputReader(store)
    assert reader.backlog("table").slices == ()
    driver = Scoring(store)
    driver.tick(entering=5, scored=0)
    write(driver.writer, {LaneId("table", 0): [numbered(0, 10)]}, frozenset({"table"}))
    assert reader.backlog("table").slices == ()
    driver.tick(entering=5, scored=3)
    found = reader.backlog("table")
    assert (found.first, found.stop) == (0, 6)
    assert rows_of(list(found.slices)) == rows_of(list(driver.state.queue(LaneId("table", 0)).slices))
    assert list(found.schemas.values()) == [encode_schema(numbered(0, 1).schema)]


def test_a_backlog_begins_where_the_readers_have_read_to(store: Store) -> None:
    driver = Scoring(store)
    driver.tick(entering=10, scored=0)
    driver.tick(entering=0, scored=2)
    driver.tick(entering=0, scored=3)
    reader = OutputReader(store)
    assert (reader.backlog("table").first, reader.backlog("table").stop) == (0, 10)
    number = driver.state.entry + 1
    driver.commit(Entry(number, 0.0, [("table", 0, 5)]))
    found = reader.backlog("table")
    assert (found.first, found.stop) == (5, 10)
    assert [(piece.first, piece.rows) for piece in found.slices] == [(1, 5)]


def test_all_that_waits_in_an_output_is_read(store: Store) -> None:
    assert read_output(store, "table").num_rows == 0
    driver = Scoring(store)
    driver.tick(entering=10, scored=0)
    driver.tick(entering=0, scored=2)
    driver.tick(entering=0, scored=3)
    table = read_output(store, "table")
    assert table.column("id").to_pylist() == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5]
    assert table.column("word").to_pylist()[-1] == "w5"


def test_an_output_of_which_a_segment_is_gone_says_which(store: Store) -> None:
    driver = Scoring(store)
    driver.tick(entering=10, scored=0)
    driver.tick(entering=0, scored=2)
    (segment,) = {piece.segment for piece in driver.state.queue(LaneId("table", 0)).slices}
    store.delete([f"segments/{segment}"])
    with pytest.raises(Damaged, match=f"segment segments/{segment} in .*: it is gone"):
        read_output(store, "table")
