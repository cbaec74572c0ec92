"""The engine's turns in virtual time: receipts are taken, lanes that are free and due get works. Compiled.

The driver's turn is the step of the simulation, as long or as short as the driver makes it. How works are sized and paced is
asked of `elastream.rules`, as the engine does.
"""

import math
from typing import NamedTuple

import numpy as np

from elastream.simulator.compiled import compiled
from elastream.simulator.due import due_s
from elastream.simulator.engine_planning import budget, plan_lanes, plan_sources, rest, turn_cost, weight
from elastream.simulator.engine_works import (
    BUDGET_S,
    CHANGED,
    COMPUTING,
    DEMAND,
    DRIVER,
    NEXT_S,
    REST_S,
    RUNNING,
    SPAN_S,
    TURN_S,
    EngineTurns,
    Works,
)
from elastream.simulator.jumps import WINDOW_S, begin_window, end_window, jump
from elastream.simulator.kernel import count_lost, hand_on, note_wait, note_waits, too_old
from elastream.simulator.state import NOW, OVER, TICKS, Fixed, Floats, Limits, Moving

BLENDS = 0.1
"""How much the newest turn counts in the share of a core that the driver needs."""
SETTLES_S, SETTLES_AFTER_CHANGE_S = 0.05, 0.5
"""So long before a window: what was changed has had its effect."""
SHORTEST_JUMP_S = 4 * WINDOW_S


class _Due(NamedTuple):
    """The arrivals by which it is known when a tuple that finishes was due."""

    all_ends: Floats
    all_counts: Floats
    ends: Floats
    reach: Floats


@compiled
def advance_turns(
    fixed: Fixed,
    system: EngineTurns,
    limits: Limits,
    moving: Moving,
    works: Works,
    costs: Floats,
    until_s: float,
    random: np.random.Generator,
) -> None:
    """Turn after turn, until this second or until all is done. A long stretch in which nothing changes is jumped over."""
    clock, own = moving.clock, works.clock
    now_s = clock[NOW]
    changed = own[CHANGED] > 0.0
    for operator in range(len(works.operators)):
        changed |= works.operators[operator].active != works.operators[operator].asked
    if changed:
        own[NEXT_S], own[CHANGED], own[SPAN_S] = min(own[NEXT_S], now_s), 0.0, 0.0
    settled_s = now_s + (SETTLES_AFTER_CHANGE_S if changed else SETTLES_S)
    began_s = math.inf
    jumps = system.jumps and until_s - now_s > SHORTEST_JUMP_S and not limits.q_size
    drops = limits.t_out_s > 0.0 or (limits.drops and limits.q_size > 0)
    plain = not (limits.drops and limits.q_size)
    for operator in range(len(works.operators)):
        plain &= works.operators[operator].even == 1
    due = _Due(fixed.all_ends, fixed.all_counts, fixed.ends, fixed.reach)
    late = np.zeros(len(works.operators))
    count_lost(fixed, moving)
    for head in range(len(works.heads)):
        works.heads[head].lost = moving.lost[head]
    while True:
        at_s = max(own[NEXT_S], own[REST_S])
        if at_s > until_s:
            break
        clock[NOW] = at_s
        if drops:
            count_lost(fixed, moving)
            for head in range(len(works.heads)):
                works.heads[head].lost = moving.lost[head]
        receipts = 0
        for source in range(len(works.sources)):
            rows, ended_s = _take_source(system, works, source, at_s)
            if rows:
                receipts += 1
                if plain:
                    _deal(works, due, moving.waits, clock, source, rows, ended_s, random)
                else:
                    _hand_on(fixed, limits, moving, source, rows, costs, ended_s, random)
        for lane in range(len(works.lanes)):
            if works.lanes[lane].taken and works.lanes[lane].ends_s + system.hop_s <= at_s:
                receipts += works.lanes[lane].receipts
                rows = _take_lane(works, lane)
                if rows:
                    head = len(works.sources) + works.lanes[lane].operator
                    ended_s = works.lanes[lane].ends_s
                    if plain:
                        _deal(works, due, moving.waits, clock, head, rows, ended_s, random)
                    else:
                        _hand_on(fixed, limits, moving, head, rows, costs, ended_s, random)
        for operator in range(len(works.operators)):
            works.operators[operator].active = works.operators[operator].asked
            if limits.t_out_s:
                late[operator] = too_old(fixed, limits, moving, operator)
        room = limits.q_size if not limits.drops else 0
        own[NEXT_S] = math.inf
        plan_sources(system, works, fixed.due_first, fixed.due_ends, fixed.due_counts, room, at_s)
        plan_lanes(system, works, late, room, at_s, random)
        _end_turn(system, moving.ticks_s, clock, works, at_s, receipts)
        if jumps and at_s >= settled_s and own[NEXT_S] < math.inf and until_s - at_s > SHORTEST_JUMP_S:
            if began_s < math.inf:
                if at_s >= began_s + WINDOW_S and end_window(fixed, moving, works, began_s):
                    began_s = math.inf
                    jump(fixed, limits, moving, works, costs, until_s, random)
            elif not jump(fixed, limits, moving, works, costs, until_s, random):
                began_s = at_s
                own[SPAN_S] = 0.0
                begin_window(moving, works)
    if own[NEXT_S] == math.inf:
        clock[OVER] = 1.0
    else:
        clock[NOW] = max(clock[NOW], until_s)


@compiled
def _end_turn(system: EngineTurns, ticks_s: Floats, clock: Floats, works: Works, at_s: float, receipts: int) -> None:
    """The driver's own costs: how soon it turns again, and how long works may take."""
    own = works.clock
    cost_s = system.turn_s + receipts * system.receipt_s
    own[TURN_S] = turn_cost(own[TURN_S], cost_s)
    rest_s = rest(own[TURN_S])
    since_s = max(cost_s, at_s + cost_s + rest_s - own[REST_S])
    own[DRIVER] += BLENDS * (cost_s / since_s - own[DRIVER])
    own[REST_S] = at_s + cost_s + rest_s
    own[BUDGET_S] = budget(system.budget_s, system.max_budget_s, own[TURN_S])
    ticks = int(clock[TICKS])
    ticks_s[ticks % len(ticks_s)] = since_s
    clock[TICKS] = ticks + 1


@compiled
def _take_source(system: EngineTurns, works: Works, number: int, at_s: float) -> tuple[int, float]:
    """The receipt of a source: how many tuples it made, and when; 0 when there is none."""
    source = works.sources[number]
    rows = source.made
    if not rows or source.ends_s + system.hop_s > at_s:
        return 0, 0.0
    source.made = 0
    works.hosts[source.host].seats -= 1
    works.clock[COMPUTING] -= 1.0
    works.clock[RUNNING] -= 1.0
    source.next_of += rows
    source.read += rows
    works.heads[number].entered += rows
    return rows, source.ends_s


@compiled
def _take_lane(works: Works, number: int) -> int:
    """The receipt of a lane: how many tuples it served. The driver learns from it how long a service takes."""
    lane, own = works.lanes[number], works.clock
    operator = works.operators[lane.operator]
    rows, done = lane.taken, lane.taken - lane.late
    lane.taken = 0
    own[RUNNING] -= 1.0
    if operator.computes:
        own[COMPUTING] -= lane.receipts
        works.hosts[lane.host].seats -= lane.receipts
    else:
        own[DEMAND] -= lane.share
        works.hosts[lane.host].threads -= 1
    lane.queued -= rows
    lane.dropped += lane.late
    lane.processed += done
    lane.busy_s += lane.served_s
    operator.usual_s += lane.usual_s
    if done:
        newest = weight(done, operator.seen)
        operator.seen += done
        operator.expected_s += newest * (lane.served_s / done - operator.expected_s)
    return int(done)


@compiled
def _deal(
    works: Works,
    due: _Due,
    waits: Floats,
    clock: Floats,
    number: int,
    done: int,
    at_s: float,
    random: np.random.Generator,
) -> None:
    """Deal the output of one work out among the lanes behind it, from a random one on, and count what finishes."""
    head = works.heads[number]
    out, before = 0, head.finished
    for place in range(head.edge, head.edge_end):
        edge = works.edges[place]
        exact = edge.carry + done * edge.share
        whole = math.floor(exact + 1e-9)
        edge.carry = exact - whole
        out += whole
        edge.over_edge += whole
        if edge.to < 0:
            head.finished += whole
            continue
        target = works.operators[edge.to]
        each = whole // target.active
        if each:
            for lane in range(target.first, target.first + target.active):
                works.lanes[lane].queued += each
                works.lanes[lane].received += each
        left = whole - each * target.active
        if left:
            at = int(random.random() * target.active)
            for _ in range(left):
                works.lanes[target.first + at].queued += 1
                works.lanes[target.first + at].received += 1
                at = at + 1 if at + 1 < target.active else 0
    if out > done:
        head.entered += out - done
    else:
        head.finished += done - out
    count = head.finished - before
    if count <= 0:
        return
    parts = min(count, 4)
    for part in range(parts):
        processed = (before + count * (part + 0.5) / parts) / due.ends[number]
        # The k-th tuple is due when k are: half a tuple after the middle of it.
        since_s = due_s(due.all_ends, due.all_counts, (processed + head.lost) / due.reach[number] + 0.5)
        note_wait(waits, clock, max(0.0, at_s - since_s), count / parts)


@compiled
def _hand_on(
    fixed: Fixed,
    limits: Limits,
    moving: Moving,
    head: int,
    done: int,
    costs: Floats,
    at_s: float,
    random: np.random.Generator,
) -> None:
    """The same for groupings that look at keys or loads, and for lanes that drop what does not fit."""
    before = moving.finished[head]
    for edge in range(fixed.edge_first[head], fixed.edge_first[head + 1]):
        if fixed.edge_to[edge] >= 0:
            moving.phase[fixed.edge_to[edge]] = random.random()
    hand_on(fixed, limits, moving, head, done, costs, random)
    if moving.finished[head] > before:
        note_waits(fixed, moving, head, before, moving.finished[head] - before, fixed.ends[head], at_s)
