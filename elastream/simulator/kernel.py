"""Parts of a step that all systems share: arrivals, dealing tuples out among lanes, latencies. Compiled."""

import math

import numpy as np

from elastream.simulator.compiled import compiled
from elastream.simulator.redirecting import is_uneven, redirected_counts
from elastream.simulator.state import (
    BUCKETS,
    BUSY,
    EVEN,
    EVERY,
    GROWTH,
    LEAST_S,
    LENGTH,
    LONGEST_WAIT_S,
    LOOKS_S,
    MERGED,
    NOW,
    OVER,
    REDIRECTED,
    SHORTEST,
    WAIT_SUM_S,
    Fixed,
    Floats,
    Ints,
    Limits,
    Moving,
)

GOLDEN = 0.6180339887498949


@compiled
def first_above(values: Floats, value: float) -> int:
    """Where the first of these rising values is that is above this one; behind them all when none is."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def first_reaching(values: Floats, value: float) -> int:
    """Where the first of these rising values is that is at least this one; behind them all when none is."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] >= value:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def due_by(ends: Floats, counts: Floats, second: float) -> int:
    """How many tuples are due at this second or before."""
    if second >= ends[-1]:
        return int(counts[-1] + 1e-9)
    if second <= ends[0]:
        return 0
    step = first_above(ends, second)
    share = (second - ends[step - 1]) / (ends[step] - ends[step - 1])
    return int(counts[step - 1] + share * (counts[step] - counts[step - 1]) + 1e-9)


@compiled
def due_s(ends: Floats, counts: Floats, number: float) -> float:
    """When the count of tuples reaches this number."""
    if number <= counts[0]:
        return float(ends[0])
    step = min(first_reaching(counts, number), len(counts) - 1)
    grows = counts[step] - counts[step - 1]
    if grows <= 0:
        return float(ends[step])
    return float(ends[step - 1] + min(1.0, (number - counts[step - 1]) / grows) * (ends[step] - ends[step - 1]))


@compiled
def source_due_by(fixed: Fixed, source: int, second: float) -> int:
    a, b = fixed.due_first[source], fixed.due_first[source + 1]
    return due_by(fixed.due_ends[a:b], fixed.due_counts[a:b], second)


@compiled
def next_due_s(fixed: Fixed, moving: Moving) -> float:
    """When the next tuple of any source is due; infinity when there is none."""
    soonest = math.inf
    for source in range(len(moving.next_of)):
        a, b = fixed.due_first[source], fixed.due_first[source + 1]
        if moving.next_of[source] < int(fixed.due_counts[b - 1] + 1e-9):
            second = due_s(fixed.due_ends[a:b], fixed.due_counts[a:b], moving.next_of[source] + 1.0)
            soonest = min(soonest, second)
    return soonest


@compiled
def route(fixed: Fixed, limits: Limits, moving: Moving, target: int, tuples: int, cost: float) -> None:
    """Share tuples out among the active lanes of an operator. `cost` is what one of them adds to a lane's load."""
    first = fixed.first[target]
    active = moving.active[target]
    if tuples <= 0:
        return
    kind = fixed.routing[target]
    if kind in (SHORTEST, BUSY):
        _level(fixed, limits, moving, target, tuples, cost, kind)
        return
    phase = moving.phase[target]
    moving.phase[target] = (phase + GOLDEN) % 1.0
    one_by_one = kind == MERGED and moving.redirect[target, LOOKS_S] == 0.0
    if kind in (REDIRECTED, MERGED):
        queued = moving.queued[first : first + active]
        if is_uneven(moving.redirect[target], queued, moving.clock[NOW], one_by_one):
            _by_room(limits, moving, target, first, active, tuples, phase)
            return
    if kind in (EVEN, REDIRECTED):
        _in_turn(
            limits.q_size if limits.drops else 0,
            moving.queued,
            moving.received,
            moving.dropped,
            first,
            active,
            tuples,
            phase,
        )
        return
    if kind == EVERY:
        for lane in range(first, first + active):
            _append(limits.q_size if limits.drops else 0, moving.queued, moving.received, moving.dropped, lane, tuples)
        return
    over = 0
    # Key groups may still be in lanes that are not active any more.
    done, before, end = 0.0, math.floor(phase), math.floor(phase) + tuples
    for lane in range(first, fixed.first[target + 1]):
        done += tuples * moving.weight[lane]
        # The last lane with a weight ends at the whole number, whatever the rounding of the parts was.
        upto = end if done > tuples * (1.0 - 1e-9) else min(end, math.floor(done + phase))
        takes = upto - before
        if one_by_one:
            takes = min(takes, max(0, int(moving.redirect[target, LENGTH]) - moving.queued[lane]))
            over += upto - before - takes
        _append(limits.q_size if limits.drops else 0, moving.queued, moving.received, moving.dropped, lane, takes)
        before = upto
        if done > tuples * (1.0 - 1e-9):
            break
    if over:
        _by_room(limits, moving, target, first, active, over, phase)


@compiled
def _by_room(limits: Limits, moving: Moving, target: int, first: int, active: int, tuples: int, phase: float) -> None:
    """Empty lanes first, full ones nothing, the others by their room."""
    queued = moving.queued[first : first + active]
    counts = redirected_counts(tuples, queued, moving.redirect[target, LENGTH], int(phase * active))
    for n in range(active):
        if counts[n]:
            _append(
                limits.q_size if limits.drops else 0,
                moving.queued,
                moving.received,
                moving.dropped,
                first + n,
                counts[n],
            )


@compiled
def _append(q_size: int, queued: Ints, received: Ints, dropped: Ints, lane: int, tuples: int) -> None:
    """`q_size` 0: any number fits. Only the arrays it needs: all of them would cost more than the work."""
    received[lane] += tuples
    if q_size:
        fits = max(0, min(tuples, q_size - queued[lane]))
        dropped[lane] += tuples - fits
        tuples = fits
    queued[lane] += tuples


@compiled
def _level(fixed: Fixed, limits: Limits, moving: Moving, target: int, tuples: int, cost: float, kind: int) -> None:
    """Each tuple to the lane with the least load, all of them at once: fill up to a common level."""
    first, active = fixed.first[target], moving.active[target]
    load = np.empty(active)
    for n in range(active):
        load[n] = moving.queued[first + n] if kind == SHORTEST else moving.busy_before[first + n]
    unit = 1.0 if kind == SHORTEST else max(cost, 1e-12)
    order = np.argsort(load)
    full = math.inf if kind == SHORTEST else 1.0
    # How many lanes take part, and how high the level is; beyond a full load all take turns.
    room = 0.0
    for n in range(active):
        room += max(0.0, full - load[n]) / unit
    filling = tuples if room >= tuples else math.floor(room)
    taking, below = 1, 0.0
    for taking in range(1, active + 1):
        below += load[order[taking - 1]]
        level = (filling * unit + below) / taking
        if taking == active or level <= load[order[taking]]:
            break
    level = (filling * unit + below) / taking
    given, exact = 0, 0.0
    phase = moving.phase[target]
    for place in range(taking):
        lane = first + order[place]
        exact += (level - load[order[place]]) / unit
        upto = filling if place == taking - 1 else min(filling, max(given, math.floor(exact + phase)))
        _append(
            limits.q_size if limits.drops else 0, moving.queued, moving.received, moving.dropped, lane, upto - given
        )
        moving.busy_before[lane] += (upto - given) * cost
        given = upto
    if given < tuples:
        _in_turn(
            limits.q_size if limits.drops else 0,
            moving.queued,
            moving.received,
            moving.dropped,
            first,
            active,
            tuples - given,
            phase,
        )
    moving.phase[target] = (phase + GOLDEN) % 1.0


@compiled
def _in_turn(
    q_size: int,
    queued: Ints,
    received: Ints,
    dropped: Ints,
    first: int,
    active: int,
    tuples: int,
    phase: float,
) -> None:
    before = math.floor(phase)
    for n in range(active):
        upto = math.floor(phase) + tuples if n == active - 1 else math.floor(tuples * (n + 1) / active + phase)
        _append(q_size, queued, received, dropped, first + n, upto - before)
        before = upto


@compiled
def hand_on(fixed: Fixed, limits: Limits, moving: Moving, head: int, processed: int, costs: Floats) -> None:
    """Send the tuples that a head processed over its edges, and count those that are more or fewer than went in."""
    out = 0
    for edge in range(fixed.edge_first[head], fixed.edge_first[head + 1]):
        exact = moving.carry[edge] + processed * fixed.edge_share[edge]
        whole = math.floor(exact + 1e-9)
        moving.carry[edge] = exact - whole
        target = fixed.edge_to[edge]
        if target < 0:
            # An output: whoever reads it does so outside.
            out += whole
            moving.over_edge[edge] += whole
            moving.finished[head] += whole
            continue
        copies = whole * moving.active[target] if fixed.routing[target] == EVERY else whole
        out += copies
        moving.over_edge[edge] += copies
        if whole and fixed.routing[target] == EVEN:
            # Handing a function all arrays takes longer than what it does.
            phase = moving.phase[target]
            moving.phase[target] = (phase + GOLDEN) % 1.0
            _in_turn(
                limits.q_size if limits.drops else 0,
                moving.queued,
                moving.received,
                moving.dropped,
                fixed.first[target],
                moving.active[target],
                whole,
                phase,
            )
        else:
            route(fixed, limits, moving, target, whole, costs[target])
    if out > processed:
        moving.entered[head] += out - processed
    else:
        moving.finished[head] += processed - out


@compiled
def count_lost(fixed: Fixed, moving: Moving) -> None:
    """Per head, tuples dropped at it or on the way to it: numbers behind it are that much ahead."""
    sources = len(moving.next_of)
    moving.lost[:] = 0.0
    for head in range(len(moving.lost)):
        if head >= sources:
            operator = head - sources
            for lane in range(fixed.first[operator], fixed.first[operator + 1]):
                moving.lost[head] += moving.dropped[lane]
        for edge in range(fixed.edge_first[head], fixed.edge_first[head + 1]):
            if fixed.edge_to[edge] >= 0:
                moving.lost[sources + fixed.edge_to[edge]] += moving.lost[head] * fixed.edge_share[edge]


@compiled
def note_wait(waits: Floats, clock: Floats, waited_s: float, tuples: float) -> None:
    """So many tuples waited for so long."""
    bucket = 0
    if waited_s > LEAST_S:
        bucket = min(BUCKETS - 1, math.ceil(math.log(waited_s / LEAST_S) / math.log(GROWTH)))
    waits[bucket] += tuples
    clock[WAIT_SUM_S] += waited_s * tuples
    clock[LONGEST_WAIT_S] = max(clock[LONGEST_WAIT_S], waited_s)


@compiled
def note_waits(fixed: Fixed, moving: Moving, head: int, before: int, at_s: float) -> None:
    """The latencies of the tuples that just finished at a head: from when those of their numbers were due."""
    count = moving.finished[head] - before
    if count <= 0:
        return
    parts = min(count, 8)
    for part in range(parts):
        processed = (before + count * (part + 0.5) / parts) / fixed.ends[head]
        # The k-th tuple is due when k are: half a tuple after the middle of it.
        number = (processed + moving.lost[head]) / fixed.reach[head] + 0.5
        waited_s = max(0.0, at_s - due_s(fixed.all_ends, fixed.all_counts, number))
        note_wait(moving.waits, moving.clock, waited_s, count / parts)


@compiled
def too_old(fixed: Fixed, limits: Limits, moving: Moving, operator: int) -> float:
    """The share of what waits for an operator that is older than it may be."""
    if not limits.t_out_s:
        return 0.0
    head = len(moving.next_of) + operator
    waiting, gone = 0, moving.lost[head]
    for lane in range(fixed.first[operator], fixed.first[operator + 1]):
        waiting += moving.queued[lane]
        gone += moving.processed[lane]
    if not waiting:
        return 0.0
    old = due_by(fixed.all_ends, fixed.all_counts, moving.clock[NOW] - limits.t_out_s) * fixed.reach[head] - gone
    return float(min(1.0, max(0.0, old / waiting)))


@compiled
def noise_of(spread: float, services: int, random: np.random.Generator) -> float:
    """The time of a number of services together, in parts of its mean: lognormal, as each of them is."""
    sigma2 = math.log1p(spread * spread / services)
    return math.exp(math.sqrt(sigma2) * random.standard_normal() - sigma2 / 2)


@compiled
def is_over(fixed: Fixed, moving: Moving) -> bool:
    """Everything has been read and served."""
    if next_due_s(fixed, moving) < math.inf:
        return False
    for lane in range(len(moving.queued)):
        if moving.queued[lane]:
            return False
    moving.clock[OVER] = 1.0
    return True
