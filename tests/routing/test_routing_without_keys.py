"""Groupings that know no key: all, global, local, direct, shuffle and none."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from routes import ACTIVE, PATIENT, SENDERS, batch_of, numbered

from elastream.errors import OperatorFailed
from elastream.routing import Sender, Snapshot, lanes_of, split
from elastream.topology import groupings


@PATIENT
@given(rows=st.integers(0, 50), active=ACTIVE, sender=SENDERS)
def test_all_gives_every_lane_every_tuple(rows: int, active: tuple[int, ...], sender: Sender) -> None:
    batch = numbered(rows)
    parts = split(groupings.all_, batch, Snapshot(active), sender)
    assert set(parts) == (set(active) if rows else set())
    assert all(part.rows.equals(batch) for part in parts.values())


@PATIENT
@given(rows=st.integers(1, 50), active=ACTIVE, sender=SENDERS)
def test_global_gives_everything_to_the_first_active_lane(rows: int, active: tuple[int, ...], sender: Sender) -> None:
    parts = split(groupings.global_, numbered(rows), Snapshot(active), sender)
    assert {lane: part.rows.num_rows for lane, part in parts.items()} == {active[0]: rows}


@PATIENT
@given(rows=st.integers(1, 50), active=ACTIVE, sender=SENDERS)
def test_local_stays_in_the_senders_lane_when_that_is_active(
    rows: int, active: tuple[int, ...], sender: Sender
) -> None:
    parts = split(groupings.local, numbered(rows), Snapshot(active), sender)
    (lane,) = parts
    assert parts[lane].rows.num_rows == rows
    assert lane == sender.lane if sender.lane in active else lane in active


def test_local_senders_without_a_lane_of_their_number_are_shared_out() -> None:
    to = Snapshot((0, 1))
    lanes = [next(iter(split(groupings.local, numbered(3), to, Sender(lane)))) for lane in range(6)]
    assert lanes == [0, 1, 0, 1, 0, 1]


@PATIENT
@given(numbers=st.lists(st.integers(0, 1000), min_size=1, max_size=50), active=ACTIVE)
def test_direct_counts_among_the_active_lanes(numbers: list[int], active: tuple[int, ...]) -> None:
    lanes = lanes_of(groupings.direct("to"), batch_of(to=pa.array(numbers, pa.int32())), Snapshot(active), Sender())
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
        split(groupings.direct("to"), batch_of(to=column), Snapshot((0, 1)), Sender())
    assert str(caught.value).startswith("grouping direct(to): expected a whole number in every row")
    assert got in str(caught.value)
    assert "fill the column with replica numbers from 0" in str(caught.value)


@PATIENT
@given(rows=st.integers(0, 500), active=ACTIVE, sender=SENDERS)
def test_shuffle_is_even_to_within_one_tuple(rows: int, active: tuple[int, ...], sender: Sender) -> None:
    counts = Counter(lanes_of(groupings.shuffle, numbered(rows), Snapshot(active), sender).tolist())
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
        counts.update(lanes_of(groupings.shuffle, numbered(rows), Snapshot(active), Sender(turn=turn)).tolist())
    assert counts == dict.fromkeys(active, rows * rounds)
