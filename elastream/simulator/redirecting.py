"""Redirection by load (`routing/redirection.py`), as the simulation's steps need it. Compiled."""

import math

import numpy as np

from elastream import rules
from elastream.simulator.compiled import compiled
from elastream.simulator.state import FOUND_LB, FOUND_MOST, LENGTH, LOOKED_S, LOOKS_S, TIMES, UNEVEN, Floats, Ints

out_of_range = compiled(rules.out_of_range)


@compiled
def is_uneven(redirect: Floats, queued: Ints, now_s: float, one_by_one: bool) -> bool:
    """True while tuples go by load. `redirect` is an operator's row, `queued` what waits in its active lanes.

    `one_by_one`: tuples for a full lane go elsewhere by themselves, so that only the balance counts here (Dr-Stream,
    algorithm 3, steps 17 to 28).
    """
    length = redirect[LENGTH]
    if length <= 0.0 or len(queued) < 2:
        return False
    if now_s - redirect[LOOKED_S] < redirect[LOOKS_S]:
        return bool(redirect[UNEVEN] > 0.0)
    redirect[LOOKED_S] = now_s
    mean, most, away = 0.0, 0, 0.0
    for lane in range(len(queued)):
        mean += queued[lane] / len(queued)
        most = max(most, queued[lane])
    for lane in range(len(queued)):
        away += abs(queued[lane] - mean) / len(queued)
    lb, fullest = away / length, most / length
    uneven = out_of_range(lb, 0.0 if one_by_one else fullest, redirect[UNEVEN] > 0.0 and redirect[LOOKS_S] > 0.0)
    if uneven and redirect[UNEVEN] == 0.0:
        redirect[TIMES] += 1.0
        redirect[FOUND_LB], redirect[FOUND_MOST] = lb, fullest
    redirect[UNEVEN] = 1.0 if uneven else 0.0
    return bool(uneven)


@compiled
def redirected_counts(rows: int, queued: Ints, length: float, turn: int) -> Ints:
    """How many of `rows` tuples each lane gets: empty lanes first, full ones nothing, the others by their room (equation 12)."""
    lanes = len(queued)
    counts = np.zeros(lanes, np.int64)
    empty = 0
    for lane in range(lanes):
        empty += queued[lane] <= 0
    if empty:
        # From the turn's on, as many as there are tuples.
        skipped, given, number = turn % empty, 0, 0
        for _ in range(2):
            for lane in range(lanes):
                if queued[lane] <= 0:
                    if number >= skipped and given < min(rows, empty) and number < skipped + empty:
                        counts[lane] += 1
                        given += 1
                    number += 1
        rows -= given
    rooms = np.empty(lanes)
    total = 0.0
    for lane in range(lanes):
        rooms[lane] = max(0.0, length - queued[lane] - counts[lane])
        total += rooms[lane]
    poured = min(rows, int(total))
    if poured > 0:
        parts = np.empty(lanes)
        left = poured
        for place in range(lanes):
            lane = (turn + place) % lanes
            exact = rooms[lane] * (poured / total)
            whole = math.floor(exact)
            counts[lane] += whole
            left -= whole
            parts[place] = whole - exact
        order = np.argsort(parts, kind="mergesort")
        for place in range(left):
            counts[(turn + order[place]) % lanes] += 1
    over = rows - poured
    if over > 0:
        _least_full_first(over, queued, counts)
    return counts


@compiled
def _least_full_first(rows: int, queued: Ints, counts: Ints) -> None:
    """No lane has room any more: up to a common level."""
    filled = (queued + counts).astype(np.float64)
    order = np.argsort(filled)
    below, taking = 0.0, 0
    for taking in range(1, len(filled) + 1):
        below += filled[order[taking - 1]]
        if taking == len(filled) or (rows + below) / taking <= filled[order[taking]]:
            break
    level, given, exact = (rows + below) / taking, 0, 0.0
    for place in range(taking):
        lane = order[place]
        exact += level - filled[lane]
        upto = rows if place == taking - 1 else min(rows, max(given, math.floor(exact + 0.5)))
        counts[lane] += upto - given
        given = upto
