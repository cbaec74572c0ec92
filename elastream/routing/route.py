"""Which lane each tuple goes to: a batch and the routing snapshot enter, lane numbers leave."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastream.errors import OperatorFailed
from elastream.routing.balance import balanced, balanced_one_by_one, dealt, round_robin
from elastream.routing.custom import chosen_replicas
from elastream.routing.hashing import hash_columns
from elastream.routing.key_groups import Owners, Splits, dealt_out, groups_with_splits
from elastream.routing.redirection import redirected
from elastream.topology import Grouping
from elastream.topology.groupings import KEY_GROUPS

Lanes = npt.NDArray[np.int64]

FEW = 32
"""Up to so many tuples are dealt out one by one: arrays would take longer to begin."""

POURS = 8
"""How often partial_key levels its pairs of lanes at most."""


@dataclass(frozen=True)
class Snapshot:
    """What routing may know of the operator behind an edge; the same for every task of a tick."""

    active: tuple[int, ...]
    """The lanes that receive."""

    queued: tuple[int, ...] = ()
    """How many tuples wait in each of them; empty means none do."""

    load: tuple[float, ...] = ()
    """The share of each one's time that is taken; empty means it is not known."""

    cost: float = 0.0
    """By how much a tuple adds to that."""

    owners: "Owners | None" = None
    """The lane of every key group; None: the groups are dealt out among the active lanes."""

    splits: "Splits" = field(default_factory=dict)
    """Keys that are dealt out to several key groups."""


@dataclass(frozen=True)
class Part:
    """The rows for one lane."""

    rows: pa.RecordBatch
    runs: tuple[tuple[int, int], ...] = ()
    """Where a key chose the lane: the key groups of the rows, as (group, how many), in their order."""


@dataclass(frozen=True)
class Sender:
    """Which task asks: its own lane, and a number that differs from task to task and from tick to tick."""

    lane: int = 0
    turn: int = 0


def split(grouping: Grouping, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> dict[int, Part]:
    """The rows for each lane. Their order is kept; with `fields`, among rows of one key group."""
    rows = batch.num_rows
    if not rows:
        return {}
    if grouping.kind == "all":
        return dict.fromkeys(to.active, Part(batch))
    if grouping.by_groups:
        return _by_group(batch, groups_with_splits(batch, grouping.columns, to.splits, sender.turn), to)
    if len(to.active) == 1:
        if grouping.kind in ("direct", "custom"):
            # What they choose is checked all the same.
            lanes_of(grouping, batch, to, sender)
        return {to.active[0]: Part(batch)}
    counts = _counts(grouping.kind, rows, to, sender.turn)
    if counts is not None:
        return _runs(batch, to.active, counts)
    return _by_lane(batch, lanes_of(grouping, batch, to, sender))


def _counts(kind: str, rows: int, to: Snapshot, turn: int) -> list[int] | None:
    """For groupings that only say how many tuples each lane gets: these numbers; None for the others."""
    if kind in ("shuffle", "none"):
        return dealt(rows, len(to.active), turn)
    if kind == "redirection":
        # No loads are told while the load is even.
        return redirected(rows, to.load, to.cost, turn) if to.load else dealt(rows, len(to.active), turn)
    if kind in ("load_balancing", "least_loaded"):
        load = to.load or (0.0,) * len(to.active)
        if rows <= FEW:
            return balanced_one_by_one(rows, list(load), to.cost, turn)
        return [int(count) for count in balanced(rows, np.asarray(load), to.cost, turn)]
    return None


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


def lanes_of(grouping: Grouping, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> Lanes:
    """One lane number a row; every grouping but `all`, which has no single one."""
    active = np.asarray(to.active, np.int64)
    match grouping.kind:
        case "shuffle" | "none":
            return _shuffle(batch.num_rows, active, sender.turn)
        case "fields" | "redirection" if grouping.columns:
            owners = np.asarray(to.owners or dealt_out(to.active), np.int64)
            lanes: Lanes = owners[groups_with_splits(batch, grouping.columns, to.splits, sender.turn)]
            return lanes
        case "redirection":
            return np.repeat(active, _counts("redirection", batch.num_rows, to, sender.turn) or [])
        case "load_balancing" | "least_loaded":
            load = np.asarray(to.load or (0.0,) * len(active))
            return np.repeat(active, balanced(batch.num_rows, load, to.cost, sender.turn))
        case "partial_key":
            return active[_partial_key(hash_columns(batch, grouping.columns), to)]
        case "global":
            return np.full(batch.num_rows, active[0])
        case "local":
            mine = sender.lane if sender.lane in to.active else active[sender.lane % len(active)]
            return np.full(batch.num_rows, mine)
        case "direct":
            return active[_direct(batch, grouping.columns[0], len(active))]
        case "custom" if grouping.function is not None:
            return active[chosen_replicas(grouping.function, batch, len(active), str(grouping))]
    raise ValueError(f"no lane numbers for grouping {grouping}")


def _shuffle(rows: int, active: Lanes, turn: int) -> Lanes:
    """Even to within one tuple; runs stay together, so that no row has to be copied."""
    return np.repeat(active, round_robin(rows, len(active), turn))


def _partial_key(hashes: npt.NDArray[np.uint64], to: Snapshot) -> Lanes:
    """Two candidate lanes a key; the tuples of each pair are poured so that the two stand level."""
    n = len(to.active)
    if n == 1:
        return np.zeros(len(hashes), np.int64)
    first = (hashes % np.uint64(n)).astype(np.int64)
    step = (hashes // np.uint64(n) % np.uint64(n - 1)).astype(np.int64)
    second = (first + 1 + step) % n
    low, high = np.minimum(first, second), np.maximum(first, second)
    pairs, where, counts = np.unique(low * n + high, return_inverse=True, return_counts=True)
    to_low = _pour(pairs.tolist(), counts.tolist(), list(to.queued) or [0] * n)
    chosen: Lanes = high
    by_pair = np.argsort(where, kind="stable")
    starts = np.cumsum(counts) - counts
    for start, rows, pair in zip(starts.tolist(), to_low, pairs.tolist(), strict=True):
        chosen[by_pair[start : start + rows]] = pair // n
    return chosen


def _pour(pairs: list[int], counts: list[int], load: list[int]) -> list[int]:
    """How many tuples of each pair go to its lower lane. Each pour changes what the next pair finds, so all are poured
    again until they settle."""
    n = len(load)
    to_low = [0] * len(pairs)
    for pair, count in zip(pairs, counts, strict=True):
        load[pair % n] += count
    for _ in range(POURS):
        settled = True
        for i, (pair, count) in enumerate(zip(pairs, counts, strict=True)):
            a, b = divmod(pair, n)
            level = min(max((load[b] - load[a]) // 2 + to_low[i], 0), count)
            moved = level - to_low[i]
            if moved:
                settled = False
                load[a] += moved
                load[b] -= moved
                to_low[i] = level
        if settled:
            break
    return to_low


def _direct(batch: pa.RecordBatch, column: str, lanes: int) -> Lanes:
    numbers = batch.column(column)
    if not pa.types.is_integer(numbers.type) or numbers.null_count:
        raise OperatorFailed(
            f"grouping direct({column}): expected a whole number in every row, got {numbers.type} with "
            f"{numbers.null_count} nulls; fill the column with replica numbers from 0"
        )
    chosen: Lanes = np.asarray(numbers).astype(np.int64) % lanes
    return chosen


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
