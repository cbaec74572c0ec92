"""Load-balancing grouping (PSPS, algorithm 1): each tuple to the replica with the least load, computed for many at once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


FEW = 32
"""Up to so many tuples are dealt out one by one: arrays would take longer to begin."""


def balanced_counts(rows: int, load: Sequence[float], cost: float, turn: int) -> list[int]:
    """How many of `rows` tuples each replica gets, in the quickest way."""
    if rows <= FEW:
        return balanced_one_by_one(rows, list(load), cost, turn)
    return [int(count) for count in balanced(rows, np.asarray(load), cost, turn)]


def balanced(rows: int, load: Floats, cost: float, turn: int) -> Counts:
    """How many of `rows` tuples each replica gets; the same numbers as dealing them out one by one.

    One by one: a tuple goes to the replica with the lowest load (the first of them), whose load grows by `cost`; when the
    lowest has reached 1, tuples go round robin from `turn` on.
    """
    if cost <= 0:
        return round_robin(rows, len(load), turn)
    room = _below(1.0, load, cost)
    total = int(room.sum())
    if rows >= total:
        return room + round_robin(rows - total, len(load), turn)
    # Were tuples a liquid they would stand at `level`. All tuples that a replica takes below `level - cost` go to it for
    # certain, so that only the last few of each replica have to be put in order.
    level = _level(rows, load, cost)
    counts = np.minimum(np.maximum(_below(level - cost, load, cost) - 1, 0), room)
    lanes = np.repeat(np.arange(len(load)), 6)
    steps = counts[lanes] + np.tile(np.arange(6), len(load))
    steps, lanes = steps[steps < room[lanes]], lanes[steps < room[lanes]]
    order = np.lexsort((lanes, load[lanes] + steps * cost))[: rows - int(counts.sum())]
    return counts + np.bincount(lanes[order], minlength=len(load))


def balanced_one_by_one(rows: int, load: list[float], cost: float, turn: int) -> list[int]:
    """The same, as it is written in the paper; quicker for a few tuples."""
    lanes = len(load)
    if cost <= 0:
        return dealt(rows, lanes, turn)
    counts = [0] * lanes
    loads = list(load)
    for number in range(rows):
        lowest = min(loads)
        if lowest >= 1.0:
            rest = dealt(rows - number, lanes, turn)
            return [have + more for have, more in zip(counts, rest, strict=True)]
        lane = loads.index(lowest)
        counts[lane] += 1
        loads[lane] = load[lane] + counts[lane] * cost
    return counts


def dealt(rows: int, lanes: int, turn: int) -> list[int]:
    """Round robin from `turn` on: how many of `rows` tuples each lane gets."""
    share, left = divmod(rows, lanes)
    counts = [share] * lanes
    for number in range(left):
        counts[(turn + number) % lanes] += 1
    return counts


def _below(limit: float, load: Floats, cost: float) -> Counts:
    """For each replica, how many tuples find its load below the limit."""
    steps = np.maximum(np.ceil((limit - load) / cost), 0).astype(np.int64)
    # A quotient may be rounded to the wrong side of a whole number.
    steps -= (steps > 0) & (load + (steps - 1) * cost >= limit)
    steps += load + steps * cost < limit
    return steps


def _level(rows: int, load: Floats, cost: float) -> float:
    """How high so many tuples stand when they are poured into vessels that are filled up to `load`."""
    ordered = np.sort(load)
    # With the k lowest vessels reached, all of these stand at their mean plus what was poured; that many are reached when
    # this is not above the next one.
    levels = (np.cumsum(ordered) + rows * cost) / np.arange(1, len(load) + 1)
    return float(levels[np.argmax(levels <= np.append(ordered[1:], np.inf))])


def round_robin(rows: int, lanes: int, turn: int) -> Counts:
    share, left = divmod(rows, lanes)
    counts = np.full(lanes, share, np.int64)
    counts[(turn + np.arange(left)) % lanes] += 1
    return counts
