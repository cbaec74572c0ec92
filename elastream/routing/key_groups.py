"""Key groups: keys fall into a fixed number of groups, and lanes own groups. Who owns which is data, changed with the fewest moves."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastream.routing.hashing import hash_columns

KEY_GROUPS = 128
"""The number of key groups, in every base. A lane owns whole groups, so an operator that is reached by keys has at most this many
replicas."""

Groups = npt.NDArray[np.int64]
Owners = list[int]
"""The lane of each group."""


def groups_of(batch: pa.RecordBatch, columns: tuple[str, ...]) -> Groups:
    """The group of every row."""
    found: Groups = (hash_columns(batch, columns) % np.uint64(KEY_GROUPS)).astype(np.int64)
    return found


Splits = Mapping[int, Sequence[int]]
"""Keys that are too much for one lane, by their hash: the groups to which their tuples are dealt out."""


def groups_with_splits(batch: pa.RecordBatch, columns: tuple[str, ...], splits: Splits, turn: int) -> Groups:
    """The same where some keys are split; the tuples of each are dealt out from `turn` on."""
    hashes = hash_columns(batch, columns)
    groups: Groups = (hashes % np.uint64(KEY_GROUPS)).astype(np.int64)
    for key, among in splits.items():
        found = np.flatnonzero(hashes == np.uint64(key))
        groups[found] = np.asarray(among, np.int64)[(turn + np.arange(len(found))) % len(among)]
    return groups


def dealt_out(lanes: Sequence[int]) -> Owners:
    """The groups of a new operator: as many for each lane, in ranges."""
    return [lanes[group * len(lanes) // KEY_GROUPS] for group in range(KEY_GROUPS)]


def rebalanced(owners: Owners, lanes: int, near: Callable[[int, int], bool] = lambda giver, taker: False) -> Owners:
    """Owners among the lanes 0 to `lanes`, as even as can be, with the fewest groups moved.

    Of the ways to do that, one in which many groups stay `near`: in the same host, say, where their state is.
    """
    counts = Counter(owners)
    # The lanes that have most may keep one more than the others: then fewer have to move.
    by_count = sorted(range(lanes), key=lambda lane: (-counts[lane], lane))
    share, over = divmod(KEY_GROUPS, lanes)
    wanted = {lane: share + (rank < over) for rank, lane in enumerate(by_count)}
    kept: Counter[int] = Counter()
    moving: list[int] = []
    for group, lane in enumerate(owners):
        if kept[lane] < wanted.get(lane, 0):
            kept[lane] += 1
        else:
            moving.append(group)
    result = list(owners)
    room = {lane: wanted[lane] - kept[lane] for lane in range(lanes) if wanted[lane] > kept[lane]}
    # First those that find a place nearby, then the others.
    for only_near in (True, False):
        left = []
        for group in moving:
            found = [lane for lane in room if not only_near or near(owners[group], lane)]
            if not found:
                left.append(group)
                continue
            taker = max(found, key=lambda lane: (room[lane], -lane))
            result[group] = taker
            room[taker] -= 1
            if not room[taker]:
                del room[taker]
        moving = left
    return result


def moves(before: Owners, after: Owners) -> list[tuple[int, int]]:
    """The groups that change hands, each with its new lane."""
    return [(group, new) for group, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
