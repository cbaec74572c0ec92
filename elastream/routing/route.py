"""Which lane each tuple goes to: a batch, a grouping and a snapshot of the lanes enter; the rows of each lane leave."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from elastream.errors import OperatorFailed
from elastream.routing.base import Grouping, Lanes, Sender, Snapshot
from elastream.routing.key_groups import KEY_GROUPS, dealt_out, groups_with_splits


@dataclass(frozen=True)
class Part:
    """The rows for one lane."""

    rows: pa.RecordBatch
    runs: tuple[tuple[int, int], ...] = ()
    """Where a key chose the lane: the key groups of the rows, as (group, how many), in their order."""


def split(grouping: Grouping, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> dict[int, Part]:
    """The rows for each lane. Their order is kept; where a key chooses, among rows of one key group."""
    rows = batch.num_rows
    if not rows:
        return {}
    if grouping.to_all:
        return dict.fromkeys(to.active, Part(batch))
    if grouping.keyed:
        return _by_group(batch, groups_with_splits(batch, grouping.columns, to.splits, sender.turn), to)
    counts = grouping.spread(rows, to, sender.turn)
    if counts is not None:
        return _runs(batch, to.active, counts)
    lanes = lanes_of(grouping, batch, to, sender)
    # The choice is checked with one lane, too.
    return {to.active[0]: Part(batch)} if len(to.active) == 1 else _by_lane(batch, lanes)


def lanes_of(grouping: Grouping, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> Lanes:
    """One lane number per row, for every grouping but those that send each tuple to all lanes."""
    active = np.asarray(to.active, np.int64)
    if grouping.keyed:
        owners = np.asarray(to.owners or dealt_out(to.active), np.int64)
        lanes: Lanes = owners[groups_with_splits(batch, grouping.columns, to.splits, sender.turn)]
        return lanes
    counts = grouping.spread(batch.num_rows, to, sender.turn)
    if counts is not None:
        return np.repeat(active, counts)
    return active[_chosen(grouping, batch, to, sender)]


def _chosen(grouping: Grouping, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> Lanes:
    """The replicas that `choose` returns, checked: it may be a user's."""
    try:
        answer = grouping.choose(batch, to, sender)
        chosen = np.asarray(answer)
    except OperatorFailed:
        raise
    except Exception as error:
        raise OperatorFailed(f"grouping {grouping}: raised {type(error).__name__}: {error}") from error
    replicas = len(to.active)
    wanted = f"grouping {grouping}: expected a replica number for each of {batch.num_rows} rows"
    if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
        form = f" of {chosen.ndim} dimensions" if chosen.ndim != 1 else ""
        raise OperatorFailed(
            f"{wanted}, got {type(answer).__name__} with {chosen.dtype}{form}; return an array of integers"
        )
    if len(chosen) != batch.num_rows:
        raise OperatorFailed(f"{wanted}, got {len(chosen)}; return one number per row")
    wrong = np.flatnonzero((chosen < 0) | (chosen >= replicas))
    if len(wrong):
        raise OperatorFailed(
            f"{wanted}, from 0 to {replicas - 1}, got {int(chosen[wrong[0]])} for row {int(wrong[0])}; take it % replicas"
        )
    return chosen.astype(np.int64)


def _runs(batch: pa.RecordBatch, lanes: tuple[int, ...], counts: list[int]) -> dict[int, Part]:
    """Runs of rows, one per lane, so that none has to be copied."""
    parts: dict[int, Part] = {}
    at = 0
    for lane, count in zip(lanes, counts, strict=True):
        if count:
            parts[lane] = Part(batch if count == batch.num_rows else batch.slice(at, count))
            at += count
    return parts


def _by_group(batch: pa.RecordBatch, groups: Lanes, to: Snapshot) -> dict[int, Part]:
    """The rows of each lane, those of one key group together: a group can then be moved without looking at its rows."""
    owners = np.asarray(to.owners or dealt_out(to.active), np.int64)
    order = np.argsort(owners[groups] * KEY_GROUPS + groups, kind="stable")
    ordered = groups[order]
    starts = np.concatenate(([0], np.flatnonzero(np.diff(ordered)) + 1, [len(ordered)]))
    if len(starts) > 2:
        batch = batch.take(pa.array(order))
    runs: dict[int, list[tuple[int, int]]] = {}
    for group, rows in zip(ordered[starts[:-1]].tolist(), np.diff(starts).tolist(), strict=True):
        runs.setdefault(int(owners[group]), []).append((group, rows))
    parts: dict[int, Part] = {}
    at = 0
    for lane, found in runs.items():
        rows = sum(count for _, count in found)
        parts[lane] = Part(batch if rows == batch.num_rows else batch.slice(at, rows), tuple(found))
        at += rows
    return parts


def _by_lane(batch: pa.RecordBatch, lanes: Lanes) -> dict[int, Part]:
    edges = np.flatnonzero(np.diff(lanes)) + 1
    starts = np.concatenate(([0], edges, [len(lanes)]))
    numbers = lanes[starts[:-1]]
    if len(np.unique(numbers)) < len(numbers):
        order = np.argsort(lanes, kind="stable")
        return _by_lane(batch.take(pa.array(order)), lanes[order])
    return {
        int(number): Part(batch.slice(int(start), int(end - start)))
        for number, start, end in zip(numbers, starts[:-1], starts[1:], strict=True)
    }
