"""Long stretches in which nothing changes: a window is simulated turn by turn, and what follows is taken to go on like it.

Every tuple of the stretch is still counted, operator by operator; only its latency is taken from the window. Compiled.
"""

import math

import numpy as np

from elastream.simulator.compiled import compiled
from elastream.simulator.due import first_above, source_due_by
from elastream.simulator.engine_works import BUDGET_S, NEXT_S, REST_S, SEEN, SEEN_S, SPAN_S, Works
from elastream.simulator.kernel import hand_on, noise_of
from elastream.simulator.state import BUCKETS, NOW, TICKS, WAIT_SUM_S, Fixed, Floats, Limits, Moving

WINDOW_S = 0.25
ALIKE = 0.05
"""How much the rate of a source may differ from that of the window, in parts of it."""
FEWEST = 30
"""Tuples that must have finished in the window."""
KEEPS_S = 60.0
"""How long a window is good for."""
BUSIEST = 0.9
"""No replica may have been busy for more of the window than this: its queue would grow."""

_SUM, _TURNS = BUCKETS, BUCKETS + 1
"""In `Works.window`, behind the buckets."""


@compiled
def begin_window(moving: Moving, works: Works) -> None:
    """Remember how things are now."""
    for bucket in range(BUCKETS):
        works.window[bucket] = moving.waits[bucket]
    works.window[_SUM] = moving.clock[WAIT_SUM_S]
    works.window[_TURNS] = moving.clock[TICKS]
    for place in range(len(works.operators)):
        operator = works.operators[place]
        operator.window_usual_s = operator.usual_s
        operator.window_processed = 0
        for lane in range(operator.first, operator.end):
            works.lanes[lane].window_busy_s = works.lanes[lane].busy_s
            operator.window_processed += works.lanes[lane].processed


@compiled
def end_window(fixed: Fixed, moving: Moving, works: Works, began_s: float) -> bool:
    """Take the differences, when enough has finished. False: the window goes on."""
    seen = 0.0
    for bucket in range(BUCKETS):
        seen += moving.waits[bucket] - works.window[bucket]
    if seen < FEWEST:
        return False
    now_s = moving.clock[NOW]
    span_s = now_s - began_s
    works.clock[SPAN_S], works.clock[SEEN], works.clock[SEEN_S] = span_s, seen, now_s
    for bucket in range(BUCKETS):
        works.window[bucket] = moving.waits[bucket] - works.window[bucket]
    works.window[_SUM] = moving.clock[WAIT_SUM_S] - works.window[_SUM]
    works.window[_TURNS] = moving.clock[TICKS] - works.window[_TURNS]
    for place in range(len(works.operators)):
        operator = works.operators[place]
        processed = -operator.window_processed
        for lane in range(operator.first, operator.end):
            processed += works.lanes[lane].processed
            if works.lanes[lane].busy_s - works.lanes[lane].window_busy_s > BUSIEST * span_s:
                # Its queue may grow: nothing can be said of what follows.
                works.clock[SPAN_S] = 0.0
        operator.each_s = operator.service_s + operator.call_s
        if processed > 0:
            operator.each_s = (operator.usual_s - operator.window_usual_s) / processed
    for source in range(len(works.sources)):
        came = source_due_by(fixed, source, now_s) - source_due_by(fixed, source, began_s)
        works.sources[source].rate = came / span_s
    return True


@compiled
def jump(
    fixed: Fixed,
    limits: Limits,
    moving: Moving,
    works: Works,
    costs: Floats,
    until_s: float,
    random: np.random.Generator,
) -> bool:
    """Go on as in the last window, for as long as the rates of the sources stay alike; False when it cannot be said."""
    clock, sources = moving.clock, len(works.sources)
    now_s, span_s = clock[NOW], works.clock[SPAN_S]
    if not span_s or now_s - works.clock[SEEN_S] > KEEPS_S or not _is_quiet(works):
        return False
    for source in range(sources):
        until_s = min(until_s, _alike_until_s(fixed, source, works.sources[source].rate, span_s, now_s))
    if until_s < now_s + span_s:
        return False
    # Everything that comes in the stretch is served in it; what waits now, waits at its end.
    finished = _finished(works)
    for number in range(len(works.lanes)):
        works.lanes[number].before = works.lanes[number].received
    for source in range(sources):
        rows = source_due_by(fixed, source, until_s) - source_due_by(fixed, source, now_s)
        moving.next_of[source] += rows
        moving.read[source] += rows
        moving.entered[source] += rows
        hand_on(fixed, limits, moving, source, rows, costs, random)
    for place in range(len(works.operators)):
        operator, total = works.operators[place], 0
        for number in range(operator.first, operator.end):
            lane = works.lanes[number]
            rows = lane.received - lane.before
            if rows:
                total += rows
                noise = noise_of(operator.spread, rows, random) if operator.spread else 1.0
                lane.queued -= rows
                lane.processed += rows
                lane.busy_s += rows * operator.each_s * noise
        hand_on(fixed, limits, moving, sources + place, total, costs, random)
    times = (_finished(works) - finished) / works.clock[SEEN]
    for bucket in range(BUCKETS):
        moving.waits[bucket] += times * works.window[bucket]
    clock[WAIT_SUM_S] += times * works.window[_SUM]
    clock[TICKS] += math.floor((until_s - now_s) / span_s * works.window[_TURNS])
    _shift(moving, works, until_s - now_s)
    return True


@compiled
def _finished(works: Works) -> int:
    finished = 0
    for head in range(len(works.heads)):
        finished += works.heads[head].finished
    return finished


@compiled
def _shift(moving: Moving, works: Works, by_s: float) -> None:
    """Move all times of works under way."""
    moving.clock[NOW] += by_s
    works.clock[NEXT_S] += by_s
    works.clock[REST_S] += by_s
    for lane in range(len(works.lanes)):
        works.lanes[lane].ends_s += by_s
        works.lanes[lane].given_s += by_s
    for source in range(len(works.sources)):
        works.sources[source].ends_s += by_s
        works.sources[source].read_s += by_s
        works.sources[source].due_s += by_s
    for host in range(len(works.hosts)):
        works.hosts[host].free_s += by_s


@compiled
def _is_quiet(works: Works) -> bool:
    """No lane has more than two works in front of it."""
    for number in range(len(works.lanes)):
        lane = works.lanes[number]
        if lane.queued * works.operators[lane.operator].expected_s > 2 * works.clock[BUDGET_S]:
            return False
    return True


@compiled
def _alike_until_s(fixed: Fixed, source: int, rate: float, span_s: float, now_s: float) -> float:
    """The end of the stretch in which a source brings tuples at about this rate, which was seen for so long."""
    a, b = fixed.due_first[source], fixed.due_first[source + 1]
    ends, counts = fixed.due_ends[a:b], fixed.due_counts[a:b]
    step = max(1, first_above(ends, now_s))
    # Whole tuples are counted: of few, the rate is known to so much.
    off = ALIKE * rate + 2.0 / span_s
    if step >= len(ends):
        return math.inf if rate == 0.0 else now_s
    while step < len(ends):
        own = (counts[step] - counts[step - 1]) / (ends[step] - ends[step - 1])
        if abs(own - rate) > off:
            return float(max(now_s, ends[step - 1]))
        step += 1
    return float(ends[-1])
