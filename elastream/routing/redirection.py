"""The grouping `redirection` (Dr-Stream, section 5.2): tuples, or whole key groups, go to the replicas with most room.

A replica's load ratio is what waits in front of it over the length of its queue (equation 5); its room is the rest of that queue.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elastream.routing.balance import balanced, dealt
from elastream.routing.base import Grouping, LoadMeasure, SimulatedAs, Snapshot
from elastream.routing.key_groups import Owners

NEAR_ENOUGH = 1.05
"""A lane with so many times the mean load gives no key group away: every move costs something."""


@dataclass(frozen=True)
class Redirection(Grouping):
    """As shuffle, or with columns as fields, until the load is uneven; then to replicas with more room."""

    columns: tuple[str, ...] = ()
    name = "redirection"
    simulated_as = SimulatedAs.REDIRECTED

    @property
    def keyed(self) -> bool:
        return bool(self.columns)

    @property
    def redirects(self) -> bool:
        return True

    @property
    def load(self) -> LoadMeasure | None:
        return None if self.columns else LoadMeasure.RATIO

    def spread(self, rows: int, to: Snapshot, turn: int) -> list[int]:
        # No loads are given while the load is even.
        return redirected(rows, to.load, to.cost, turn) if to.load else dealt(rows, len(to.active), turn)


def redirected(rows: int, ratios: Sequence[float], cost: float, turn: int) -> list[int]:
    """How many of `rows` tuples each replica gets (algorithm 1, equation 12); `cost`: by how much a tuple adds to a ratio.

    Rule 1: replicas with nothing in front of them come first. Rule 2: those whose queue is full get nothing. All others get
    tuples in proportion to their room; that they do not get more alike or less by what they get is what makes one division
    the same as dealing tuple by tuple. When no queue has room, the least full come first: nothing is lost here.
    """
    lanes = len(ratios)
    if cost <= 0:
        return dealt(rows, lanes, turn)
    counts = [0] * lanes
    empty = [lane for lane in range(lanes) if ratios[lane] <= 0.0]
    for number in range(min(rows, len(empty))):
        counts[empty[(turn + number) % len(empty)]] += 1
    left = rows - sum(counts)
    rooms = np.array([max(0.0, (1.0 - ratio) / cost - have) for ratio, have in zip(ratios, counts, strict=True)])
    total = float(rooms.sum())
    poured = min(left, int(total))
    if poured:
        exact = rooms * (poured / total)
        whole = np.floor(exact).astype(np.int64)
        # Whole tuples first; those that are over go to the largest parts, in turn where these are alike.
        order = np.lexsort(((np.arange(lanes) - turn) % lanes, whole - exact))
        whole[order[: poured - int(whole.sum())]] += 1
        counts = [have + int(more) for have, more in zip(counts, whole, strict=True)]
    if left > poured:
        filled = np.array([ratio + have * cost for ratio, have in zip(ratios, counts, strict=True)])
        most = float(filled.max()) + (left - poured + 1) * cost
        over = balanced(left - poured, filled / most, cost / most, turn)
        counts = [have + int(more) for have, more in zip(counts, over, strict=True)]
    return counts


def redirected_groups(
    owners: Owners, demand: Sequence[float], ratios: Sequence[float], slowness: Sequence[float] | None = None
) -> Owners:
    """New owners of key groups: the most loaded lanes give groups to those with most room, until that helps no more.

    `demand`: per group, the part of a queue that its tuples of the next interval and those that wait will fill. `ratios`: per
    lane, how full its queue is now; there are as many lanes as ratios. `slowness`: how long a tuple takes in each lane,
    against the mean. Rule 1: an empty lane comes first. Rule 2: a full one gets nothing.
    """
    lanes = len(ratios)
    slow = list(slowness) if slowness is not None else [1.0] * lanes
    result = list(owners)
    mine: list[set[int]] = [set() for _ in range(lanes)]
    for group, lane in enumerate(result):
        mine[lane].add(group)
    load = [slow[lane] * sum(demand[group] for group in mine[lane]) for lane in range(lanes)]
    receives = [lane for lane in range(lanes) if ratios[lane] < 1.0]
    target = NEAR_ENOUGH * sum(load) / lanes
    for _ in range(len(owners)):
        giver = max(range(lanes), key=load.__getitem__)
        takers = [lane for lane in receives if lane != giver]
        if load[giver] <= target or not takers:
            break
        taker = min(takers, key=lambda lane: (load[lane], ratios[lane] > 0.0, lane))

        def after(group: int, giver: int = giver, taker: int = taker) -> float:
            """The load of the more loaded of the two, were the group moved."""
            return max(load[giver] - slow[giver] * demand[group], load[taker] + slow[taker] * demand[group])

        best = min(mine[giver], key=lambda group: (after(group), group))
        if after(best) >= load[giver] * (1.0 - 1e-9):
            break
        mine[giver].remove(best)
        mine[taker].add(best)
        load[giver] -= slow[giver] * demand[best]
        load[taker] += slow[taker] * demand[best]
        result[best] = taker
    return result


def split_among(
    home: int, weight: float, mean: float, owners: Owners, demand: Sequence[float], lanes: int
) -> list[int]:
    """The key groups to which a heavy key is dealt out: its own, and one in each of the least loaded other lanes.

    `weight` of the key and `mean` of a lane are in one unit; in every lane the lightest group is taken.
    """
    load = [0.0] * lanes
    lightest: dict[int, int] = {}
    for group, lane in enumerate(owners):
        load[lane] += demand[group]
        if lane not in lightest or demand[group] < demand[lightest[lane]]:
            lightest[lane] = group
    others = sorted((lane for lane in lightest if lane != owners[home]), key=lambda lane: (load[lane], lane))
    ways = min(len(others) + 1, math.ceil(weight / mean))
    return [home, *(lightest[lane] for lane in others[: ways - 1])]
