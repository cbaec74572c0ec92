"""The grouping `partial_key`: each key has two replicas, and the one with the shorter queue gets the tuple."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from elastream.routing.base import Grouping, Lanes, Sender, SimulatedAs, Snapshot
from elastream.routing.hashing import hash_columns

MAX_POURS = 8
"""How often the pairs of lanes are levelled at most."""


@dataclass(frozen=True)
class PartialKey(Grouping):
    """Each key has two replicas; the one with fewer queued tuples gets the tuple."""

    columns: tuple[str, ...] = ()
    name = "partial_key"
    needs_columns = True
    needs_queued = True
    simulated_as = SimulatedAs.SHORTEST
    """Of a key's two replicas the better is nearly the shortest of all."""

    def choose(self, batch: pa.RecordBatch, to: Snapshot, sender: Sender) -> Lanes:
        n = len(to.active)
        if n == 1:
            return np.zeros(batch.num_rows, np.int64)
        hashes = hash_columns(batch, self.columns)
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
    """How many tuples of each pair go to its lower lane, so that both lanes of a pair stand level.

    Each pour changes the levels for the next pair, so all are poured again until they settle.
    """
    n = len(load)
    to_low = [0] * len(pairs)
    for pair, count in zip(pairs, counts, strict=True):
        load[pair % n] += count
    for _ in range(MAX_POURS):
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
