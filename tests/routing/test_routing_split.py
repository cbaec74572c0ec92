"""What holds of every grouping: no tuple is lost or doubled, and only active lanes receive."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from routes import ACTIVE, PATIENT, SENDERS, batch_of, numbered

from elastream.routing import Sender, Snapshot, lanes_of, split
from elastream.routing.key_groups import groups_of
from elastream.topology import Grouping, groupings

SINGLE = [
    groupings.shuffle,
    groupings.fields("group"),
    groupings.fields("group", "id"),
    groupings.partial_key("group"),
    groupings.global_,
    groupings.local,
    groupings.direct("group"),
]


@pytest.mark.parametrize("grouping", SINGLE, ids=str)
@PATIENT
@given(
    groups=st.lists(st.integers(0, 9), min_size=1, max_size=80), active=ACTIVE, sender=SENDERS, at=st.integers(0, 79)
)
def test_split_loses_no_row_doubles_none_and_keeps_the_order_within_a_lane(
    grouping: Grouping, groups: list[int], active: tuple[int, ...], sender: Sender, at: int
) -> None:
    # A piece of a longer batch, as a task hands it on.
    batch = batch_of(id=np.arange(len(groups)), group=groups, word=[f"w{n}" for n in groups]).slice(at % len(groups))
    to = Snapshot(active)
    parts = split(grouping, batch, to, sender)
    lanes = lanes_of(grouping, batch, to, sender).tolist()
    wanted: dict[int, list[dict[str, Any]]] = {}
    for row, lane in zip(batch.to_pylist(), lanes, strict=True):
        wanted.setdefault(lane, []).append(row)
    found = {lane: part.rows.to_pylist() for lane, part in parts.items()}
    if grouping.keyed:
        # Tuples of one key group stand together.
        group_of = dict(zip(batch.column("id").to_pylist(), groups_of(batch, grouping.columns).tolist(), strict=True))
        wanted = {lane: sorted(rows, key=lambda row: group_of[row["id"]]) for lane, rows in wanted.items()}
        runs = {lane: [group for group, n in part.runs for _ in range(n)] for lane, part in parts.items()}
        assert runs == {lane: [group_of[row["id"]] for row in rows] for lane, rows in wanted.items()}
    assert found == wanted
    assert set(parts) <= set(active)
    assert all(type(lane) is int and part.rows.schema == batch.schema for lane, part in parts.items())


@pytest.mark.parametrize("grouping", [*SINGLE, groupings.all_], ids=str)
def test_a_single_active_lane_gets_the_batch_as_it_is(grouping: Grouping) -> None:
    batch = numbered(20)
    parts = split(grouping, batch, Snapshot((5,), (1000,)), Sender(3, 8))
    assert list(parts) == [5]
    whole = parts[5].rows if not grouping.keyed else parts[5].rows.sort_by("id")
    assert whole.equals(batch)


@pytest.mark.parametrize("grouping", [*SINGLE, groupings.all_], ids=str)
def test_an_empty_batch_goes_nowhere(grouping: Grouping) -> None:
    assert split(grouping, numbered(0), Snapshot((2, 4)), Sender()) == {}


@pytest.mark.parametrize("grouping", [*SINGLE, groupings.all_], ids=str)
def test_only_active_lanes_receive_whatever_their_numbers(grouping: Grouping) -> None:
    parts = split(grouping, numbered(500), Snapshot((3, 11, 40)), Sender(11, 2))
    assert set(parts) <= {3, 11, 40}
    wanted = 1 if grouping.name in ("global", "local") else 3
    assert len(parts) == wanted
