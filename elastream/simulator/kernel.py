"""Parts of a step that all systems share: arrivals, dealing tuples out among lanes, latencies. Compiled."""

import math

import numpy as np

from elastream.report import latency
from elastream.simulator.compiled import compiled
from elastream.simulator.drawing import drawn_counts
from elastream.simulator.due import next_due_s, sent_at, sent_by
from elastream.simulator.redirecting import is_uneven, redirected_counts
from elastream.simulator.state import (
    BUCKETS,
    BUSY,
    DRAWN,
    EVEN,
    EVERY,
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

bucket_of = compiled(latency.bucket_of)

GOLDEN = 0.6180339887498949


@compiled
def route(
    fixed: Fixed,
    limits: Limits,
    moving: Moving,
    target: int,
    tuples: int,
    cost: float,
    random: np.random.Generator,
) -> None:
    """Share tuples out among the active lanes of an operator. `cost` is what one of them adds to a lane's load."""
    first = fixed.first[target]
    active = moving.active[target]
    if tuples <= 0:
        return
    kind = fixed.routing[target]
    if kind in (SHORTEST, BUSY):
        _level(fixed, limits, moving, target, tuples, cost, kind)
        return
    if kind == DRAWN:
        counts = drawn_counts(fixed, moving, target, tuples, random)
        for n in range(active):
            _append(
                limits.q_size if limits.drops else 0,
                moving.queued,
                moving.received,
                moving.dropped,
                first + n,
                counts[n],
            )
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
def over_edge(carry: Floats, edge: int, expected: float, left: int, splits: bool, last: bool) -> int:
    """How many whole tuples go over an edge now; where a flow splits, all that are `left` go over the last one."""
    exact = carry[edge] + expected
    whole = math.floor(exact + 1e-9)
    if splits:
        whole = left if last else min(whole, left)
    carry[edge] = exact - whole
    return int(whole)


@compiled
def hand_on(
    fixed: Fixed,
    limits: Limits,
    moving: Moving,
    head: int,
    processed: int,
    costs: Floats,
    random: np.random.Generator,
) -> None:
    """Send the tuples that a head processed over its edges, and count those that are more or fewer than went in."""
    out, left, end = 0, processed, fixed.edge_first[head + 1]
    for edge in range(fixed.edge_first[head], end):
        expected = processed * fixed.edge_share[edge]
        whole = over_edge(moving.carry, edge, expected, left, fixed.splits[head], edge == end - 1)
        left -= whole
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
            route(fixed, limits, moving, target, whole, costs[target], random)
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
    waits[min(BUCKETS - 1, bucket_of(waited_s))] += tuples
    clock[WAIT_SUM_S] += waited_s * tuples
    clock[LONGEST_WAIT_S] = max(clock[LONGEST_WAIT_S], waited_s)


@compiled
def note_waits(fixed: Fixed, moving: Moving, head: int, before: int, count: int, each: float, at_s: float) -> None:
    """The latencies of the `count` tuples that just finished at a head, from when those of their numbers left a source.

    `each` is how many finish there for each one that it processes.
    """
    if count <= 0:
        return
    parts = min(count, 8)
    for part in range(parts):
        processed = (before + count * (part + 0.5) / parts) / each
        # The k-th tuple is due when k are: half a tuple after the middle of it.
        number = (processed + moving.lost[head]) / fixed.reach[head] + 0.5
        waited_s = max(0.0, at_s - sent_at(fixed, moving, number))
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
    old = sent_by(fixed, moving, moving.clock[NOW] - limits.t_out_s) * fixed.reach[head] - gone
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
