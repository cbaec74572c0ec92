"""A system that serves tuple by tuple, such as Storm, in small steps: no tick, every lane works all the time. Compiled."""

from typing import NamedTuple

import numpy as np

from elastream.simulator.compiled import compiled
from elastream.simulator.due import due_s, source_due_by
from elastream.simulator.kernel import count_lost, hand_on, is_over, noise_of, note_waits, too_old
from elastream.simulator.state import NOW, TICKS, Fixed, Floats, Limits, Moving


class StormSteps(NamedTuple):
    """How it is stepped over."""

    step_s: float
    crowding: float
    """How much slower a node gets for each thread more than it has cores, besides sharing the cores."""


@compiled
def advance_steps(
    fixed: Fixed,
    system: StormSteps,
    limits: Limits,
    moving: Moving,
    costs: Floats,
    until_s: float,
    random: np.random.Generator,
) -> None:
    """Step after step, until the first that ends at `until_s` or later, or until all is done."""
    demand = np.zeros(len(fixed.node_cores))
    busy = np.zeros(len(fixed.node_cores))
    while moving.clock[NOW] < until_s:
        if is_over(fixed, moving):
            return
        _step(fixed, system, limits, moving, costs, demand, busy, random)


@compiled
def in_flight(fixed: Fixed, limits: Limits, moving: Moving) -> int:
    """Tuples that left their sources and are not acknowledged yet; each of several that became of one counts."""
    if not limits.first_acks:
        return int(moving.queued.sum())
    found = 0
    for operator in range(len(fixed.entry)):
        if fixed.entry[operator]:
            found += moving.queued[fixed.first[operator] : fixed.first[operator + 1]].sum()
    return found


@compiled
def note_sent(fixed: Fixed, moving: Moving, reads: int, began_s: float) -> None:
    """The next tuples leave their source: when they are due, or, held back, as soon as the step begins."""
    number = moving.read.sum()
    for place in range(number, min(number + reads, len(moving.sent_s))):
        moving.sent_s[place] = max(began_s, due_s(fixed.all_ends, fixed.all_counts, place + 1.0))


@compiled
def _step(
    fixed: Fixed,
    system: StormSteps,
    limits: Limits,
    moving: Moving,
    costs: Floats,
    demand: Floats,
    busy: Floats,
    random: np.random.Generator,
) -> None:
    began_s = moving.clock[NOW]
    now_s = began_s + system.step_s
    sources, operators = len(moving.next_of), len(fixed.service_s)
    for source in range(sources):
        due = source_due_by(fixed, source, now_s) - moving.next_of[source]
        reads = due
        if limits.in_flight:
            reads = min(due, max(0, limits.in_flight - in_flight(fixed, limits, moving)))
            note_sent(fixed, moving, reads, began_s)
            if limits.spout_size:
                over = max(0, due - reads - limits.spout_size)
                moving.next_of[source] += over
                moving.refused[source] += over
        moving.next_of[source] += reads
        moving.read[source] += reads
        moving.entered[source] += reads
        hand_on(fixed, limits, moving, source, reads, costs, random)
    # Lanes with work share the cores of their node, and threads beyond its cores are in one another's way.
    demand[:] = 0.0
    busy[:] = 0.0
    for operator in range(operators):
        for lane in range(fixed.first[operator], fixed.first[operator + 1]):
            if moving.queued[lane]:
                demand[moving.node[lane]] += fixed.cpu[operator]
                busy[moving.node[lane]] += 1.0
    count_lost(fixed, moving)
    for operator in range(operators):
        done = 0
        each_s = fixed.service_s[operator] * (1.0 + fixed.bend[operator] * (moving.active[operator] - 1))
        limit_s = fixed.limit_s[operator] * moving.active[operator]
        late = too_old(fixed, limits, moving, operator) if limits.t_out_s else 0.0
        for lane in range(fixed.first[operator], fixed.first[operator + 1]):
            old = round(moving.queued[lane] * late)
            moving.queued[lane] -= old
            moving.dropped[lane] += old
            node = moving.node[lane]
            if moving.ready_s[lane] > began_s or not moving.node_up[node]:
                moving.credit[lane] = 0.0
                continue
            credit_s = moving.credit[lane] + system.step_s
            if not moving.queued[lane]:
                # An idle lane saves nothing up; a long service goes on.
                moving.credit[lane] = min(0.0, credit_s)
                continue
            crowd = max(0.0, busy[node] - fixed.node_cores[node])
            slower = max(1.0, demand[node] / fixed.node_cores[node]) * (1.0 + system.crowding * crowd)
            mean_s = max(each_s * slower / fixed.node_speed[node], limit_s)
            most = max(0, int(credit_s / mean_s))
            takes = min(moving.queued[lane], most)
            took_s = takes * mean_s
            if fixed.spread[operator] and takes:
                took_s *= noise_of(fixed.spread[operator], takes, random)
            # What is left over of a service that goes on counts in the next step.
            moving.credit[lane] = credit_s - took_s if takes == most else min(0.0, credit_s - took_s)
            moving.queued[lane] -= takes
            moving.processed[lane] += takes
            moving.busy_s[lane] += took_s
            done += takes
        if done:
            head = sources + operator
            before = moving.finished[head]
            hand_on(fixed, limits, moving, head, done, costs, random)
            if not limits.first_acks:
                note_waits(fixed, moving, head, before, moving.finished[head] - before, fixed.ends[head], now_s)
            elif fixed.entry[operator]:
                processed = moving.processed[fixed.first[operator] : fixed.first[operator + 1]].sum()
                note_waits(fixed, moving, head, processed - done, done, 1.0, now_s)
    moving.clock[NOW] = now_s
    ticks = int(moving.clock[TICKS])
    moving.ticks_s[ticks % len(moving.ticks_s)] = system.step_s
    moving.clock[TICKS] += 1
    moving.active[:] = moving.asked
