"""The log of an operator's states: which changes are kept, and for whom they are enough."""

from elastream.lanes.runs import packed
from elastream.lanes.segments import SchemaId, Slice
from elastream.lanes.state_log import StateLog, Whole


def change(**rows: int) -> Slice:
    """Of the key groups `g1`, `g2`, ..., so many rows each."""
    runs = [(int(name[1:]), count) for name, count in rows.items()]
    return Slice("file", 0, 0, 0, SchemaId("x"), 0, sum(count for _, count in runs), packed(runs))


def log_of(*changes: Slice) -> StateLog:
    log = StateLog()
    for one in changes:
        log.add(one)
    return log


def test_a_copy_is_enough_as_long_as_every_change_that_it_lacks_is_kept() -> None:
    log = log_of(change(g1=3, g2=1), change(g1=2), change(g2=4), change(g1=1))
    assert log.has_since(1, 0) and log.has_since(2, 1) and log.rows_since(2) == 5
    log.add_whole(1, Whole(4, 10, 100, []))
    # Change 0 stays for group 2, so a copy that knows nothing of it is still enough, although its group was written whole.
    assert [one.number for one in log.changes] == [0, 1, 2, 3] and log.has_since(1, 0)
    log.add_whole(2, Whole(4, 10, 100, []))
    assert not log.changes and log.next_number == 4
    assert not log.has_since(1, 3), "change 3 was of group 1, and is gone"
    assert log.has_since(2, 3), "nothing of group 2 came after change 2"
    assert log.has_since(1, 4) and not log.has_since(2, 2)


def test_the_changes_of_a_copy_are_those_of_its_groups_from_its_number_on() -> None:
    log = log_of(change(g1=3), change(g2=2), change(g1=1, g2=1))
    assert [one.number for one in log.since([2], 0)] == [1, 2]
    assert [one.number for one in log.since([1], 1)] == [2]
    assert log.rows_since(0) == 7 and log.rows_since(3) == 0


def test_changes_after_a_snapshot_was_taken_are_kept() -> None:
    log = log_of(*[change(g1=1)] * 4)
    log.add_whole(1, Whole(2, 10, 100, []))
    assert [one.number for one in log.changes] == [2, 3]
    assert [one.number for one in log.since([1], log.whole(1).since)] == [2, 3]


def test_a_snapshot_that_is_older_than_the_last_is_not_used() -> None:
    log, old = log_of(*[change(g1=1)] * 4), change(g1=7)
    newest = Whole(4, 10, 100, [])
    log.add_whole(1, newest)
    assert log.add_whole(1, Whole(3, 9, 90, [old])) == [old], "and its segment is not needed"
    assert log.whole(1) == newest
