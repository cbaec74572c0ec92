"""The engine's tick, modelled: what is due and what lanes may serve in the budget, in one stage, then the next. Compiled."""

import math
from typing import NamedTuple

import numpy as np

from elastream.simulator.compiled import compiled
from elastream.simulator.kernel import (
    count_lost,
    hand_on,
    is_over,
    next_due_s,
    noise_of,
    note_waits,
    source_due_by,
    too_old,
)
from elastream.simulator.state import (
    BUDGET_S,
    NOW,
    OVERHEAD_S,
    OVERHEADS,
    TICKS,
    Fixed,
    Floats,
    Limits,
    Moving,
)

LEARNS = 0.3
"""How much the newest tick counts in what a service is expected to last."""
SHARED_S = 0.01
"""Lanes with less work share a task."""
MOST_ROWS = 500_000


class SparkTicks(NamedTuple):
    """What a tick costs on a machine, and the engine's settings."""

    base_s: float
    """An empty tick."""
    task_s: float
    """Each task more."""
    tuple_s: float
    """Reading, routing and writing a tuple."""
    spread: float
    """Standard deviation of what a tick costs, in parts of it."""
    reads_at: float
    """The part of a tick's overhead after which sources read."""
    slots: int
    cores: int
    threads_tasks: int
    """Tasks among which lanes that are threads are shared out."""
    budget_s: float
    max_budget_s: float
    heartbeat_s: float
    elastic: bool
    lane_s: float = 0.0
    """Serving a lane that is a thread, besides its tuples."""
    crowding: float = 0.0
    """How much slower everything gets for each lane that is served beyond the cores, besides sharing them."""


@compiled
def advance_ticks(
    fixed: Fixed,
    system: SparkTicks,
    limits: Limits,
    moving: Moving,
    costs: Floats,
    until_s: float,
    random: np.random.Generator,
) -> None:
    """Tick after tick, until the first that ends at `until_s` or later, or until all is done."""
    take = np.zeros(len(moving.queued), np.int64)
    served_s = np.zeros(len(moving.queued))
    while moving.clock[NOW] < until_s:
        if is_over(fixed, moving):
            return
        _tick(fixed, system, limits, moving, costs, take, served_s, random)


@compiled
def _tick(
    fixed: Fixed,
    system: SparkTicks,
    limits: Limits,
    moving: Moving,
    costs: Floats,
    take: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    served_s: Floats,
    random: np.random.Generator,
) -> None:
    began_s = moving.clock[NOW]
    operators = len(fixed.service_s)
    if not plan_tick(fixed, system, limits, moving, take):
        moving.clock[NOW] = max(began_s, min(next_due_s(fixed, moving), began_s + system.heartbeat_s))
    start_s = moving.clock[NOW]
    count_lost(fixed, moving)
    # What every lane serves, and how long that takes.
    queued, dropped, processed, busy_s, node = (
        moving.queued,
        moving.dropped,
        moving.processed,
        moving.busy_s,
        moving.node,
    )
    node_speed = fixed.node_speed
    longest_s, working, small_s, alone, threads, tuples = 0.0, 0.0, 0.0, 0, 0, 0
    for operator in range(operators):
        late = too_old(fixed, limits, moving, operator) if limits.t_out_s else 0.0
        service_s, spread, cpu = fixed.service_s[operator], fixed.spread[operator], fixed.cpu[operator]
        is_thread = fixed.threads[operator]
        for lane in range(fixed.first[operator], fixed.first[operator + 1]):
            served_s[lane] = 0.0
            if not take[lane]:
                continue
            tuples += take[lane]
            # The oldest are in front.
            old = min(take[lane], round(queued[lane] * late))
            queued[lane] -= take[lane]
            dropped[lane] += old
            take[lane] -= old
            mean_s = service_s / node_speed[node[lane]]
            noise = 1.0
            if spread and take[lane]:
                noise = noise_of(spread, take[lane], random)
            served_s[lane] = take[lane] * mean_s * noise
            working += served_s[lane] * cpu
            if is_thread and take[lane]:
                served_s[lane] += system.lane_s
            longest_s = max(longest_s, served_s[lane])
            if served_s[lane] < SHARED_S:
                small_s += served_s[lane]
            elif is_thread:
                threads += 1
            else:
                alone += 1
    # More work than the cores can do in the time of the longest task makes every task longer.
    slower = max(1.0, working / (system.cores * longest_s)) if longest_s else 1.0
    slower *= 1.0 + system.crowding * max(0, alone + threads - system.cores)
    longest_s *= slower
    tasks = alone + min(threads, system.threads_tasks) + max(1, math.ceil(small_s / SHARED_S))
    noise = math.exp(system.spread * random.standard_normal() - system.spread**2 / 2) if system.spread else 1.0
    overhead_s = (system.base_s + system.task_s * tasks) * noise
    read_at_s = start_s + overhead_s * system.reads_at
    # Sources read what is due when their task runs.
    for source in range(len(moving.next_of)):
        most = int(min(MOST_ROWS, max(1.0, moving.clock[BUDGET_S] / fixed.source_service_s[source])))
        due = source_due_by(fixed, source, read_at_s) - moving.next_of[source]
        if limits.q_size:
            most = min(most, room_for(fixed, limits, moving, source))
        reads = max(0, min(due, most))
        moving.next_of[source] += reads
        moving.read[source] += reads
        moving.entered[source] += reads
        tuples += reads
        before = moving.finished[source]
        hand_on(fixed, limits, moving, source, reads, costs)
        if moving.finished[source] > before:
            note_waits(fixed, moving, source, before, start_s + overhead_s)
    overhead_s += tuples * system.tuple_s
    end_s = start_s + overhead_s + longest_s
    for operator in range(operators):
        done, took_s = 0, 0.0
        for lane in range(fixed.first[operator], fixed.first[operator + 1]):
            if take[lane]:
                done += take[lane]
                took_s += served_s[lane] * slower
                processed[lane] += take[lane]
                busy_s[lane] += served_s[lane] * slower
        if done:
            moving.expected_s[operator] += LEARNS * (took_s / done - moving.expected_s[operator])
            head = len(moving.next_of) + operator
            before = moving.finished[head]
            hand_on(fixed, limits, moving, head, done, costs)
            if moving.finished[head] > before:
                note_waits(fixed, moving, head, before, end_s)
    moving.clock[NOW] = end_s
    if longest_s:
        moving.clock[OVERHEAD_S] += overhead_s
        moving.clock[OVERHEADS] += 1
    ticks = int(moving.clock[TICKS])
    moving.ticks_s[ticks % len(moving.ticks_s)] = end_s - began_s
    moving.clock[TICKS] += 1
    moving.active[:] = moving.asked
    moving.clock[BUDGET_S] = tick_budget(fixed, system, moving)


@compiled
def plan_tick(
    fixed: Fixed,
    system: SparkTicks,
    limits: Limits,
    moving: Moving,
    take: "np.ndarray[tuple[int], np.dtype[np.int64]]",
) -> bool:
    """How many tuples of each lane the next tick takes; whether it takes any."""
    budget_s, now_s = moving.clock[BUDGET_S], moving.clock[NOW]
    sources = len(moving.next_of)
    queued, ready_s = moving.queued, moving.ready_s
    expected, planned = 0.0, False
    for operator in range(len(fixed.service_s)):
        service_s, alone = moving.expected_s[operator], not fixed.threads[operator]
        most = int(min(MOST_ROWS, max(1.0, budget_s / max(service_s, 1e-9))))
        for lane in range(fixed.first[operator], fixed.first[operator + 1]):
            take[lane] = min(queued[lane], most) if ready_s[lane] <= now_s else 0
            if take[lane]:
                planned = True
                if alone:
                    expected += take[lane] * service_s
    waits = limits.q_size > 0 and not limits.drops
    crowd = min(1.0, system.slots * budget_s / expected) if expected else 1.0
    if not waits and crowd == 1.0:
        return planned
    for operator in range(len(fixed.service_s)):
        room = room_for(fixed, limits, moving, sources + operator) if waits else MOST_ROWS
        fewer = crowd if not fixed.threads[operator] else 1.0
        for lane in range(fixed.first[operator], fixed.first[operator + 1]):
            if take[lane] and fewer < 1.0:
                take[lane] = max(1, int(take[lane] * fewer))
            take[lane] = min(take[lane], room)
    return planned


@compiled
def room_for(fixed: Fixed, limits: Limits, moving: Moving, head: int) -> int:
    """The most tuples that one sender may take while full lanes behind it make it wait."""
    room = MOST_ROWS
    if not limits.q_size or limits.drops:
        return room
    for edge in range(fixed.edge_first[head], fixed.edge_first[head + 1]):
        target = fixed.edge_to[edge]
        if target < 0:
            continue
        first, active = fixed.first[target], moving.active[target]
        fullest = 0
        for lane in range(first, first + active):
            fullest = max(fullest, moving.queued[lane])
        senders = 1 if head < len(moving.next_of) else max(1, moving.active[head - len(moving.next_of)])
        share = max(0, limits.q_size - fullest) // senders * active
        room = min(room, int(share / max(1.0, fixed.edge_share[edge])))
    return room


@compiled
def tick_budget(fixed: Fixed, system: SparkTicks, moving: Moving) -> float:
    """A quarter of the longest backlog that no further replica will take, within the limits."""
    queued, backlog_s = moving.queued, 0.0
    for operator in range(len(fixed.service_s)):
        first, end = fixed.first[operator], fixed.first[operator + 1]
        if system.elastic and moving.active[operator] < end - first:
            continue
        longest = 0
        for lane in range(first, end):
            longest = max(longest, queued[lane])
        backlog_s = max(backlog_s, longest * moving.expected_s[operator])
    return min(max(system.budget_s, backlog_s / 4), system.max_budget_s)
