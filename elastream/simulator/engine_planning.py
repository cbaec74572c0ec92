"""The plan of a simulated turn: which sources and lanes get works, by which host, and how long these take. Compiled."""

import math

import numpy as np

from elastream import rules
from elastream.simulator import crowding
from elastream.simulator.compiled import compiled
from elastream.simulator.due import due_by, due_s
from elastream.simulator.engine_works import (
    BUDGET_S,
    COMPUTING,
    COPYING,
    CURSOR,
    DEMAND,
    DRIVER,
    NEXT_S,
    RUNNING,
    EngineTurns,
    Works,
)
from elastream.simulator.state import Floats, Ints

CROWDED = 0.8
"""Works that wait find the cores taken for no more than this share of the time, however many there are."""

budget = compiled(rules.budget)
turn_cost = compiled(rules.turn_cost)
quota = compiled(rules.quota)
next_work_s = compiled(rules.due_s)
weight = compiled(rules.weight)
rest = compiled(rules.rest)
shares_work = compiled(rules.shares_work)
fits = compiled(rules.fits)
lock_wait = compiled(crowding.lock_wait)
thread_cost = compiled(crowding.thread_cost)
process_cost = compiled(crowding.process_cost)


@compiled
def plan_sources(
    system: EngineTurns,
    works: Works,
    due_first: Ints,
    due_ends: Floats,
    due_counts: Floats,
    q_size: int,
    at_s: float,
) -> None:
    """Works for the sources that have tuples due, at most once in a pace. `q_size` above 0: full lanes make senders wait."""
    own = works.clock
    if q_size:
        _reserve_all(works)
    for number in range(len(works.sources)):
        source = works.sources[number]
        if not source.made:
            a, b = due_first[number], due_first[number + 1]
            _plan_source(system, works, number, due_ends[a:b], due_counts[a:b], q_size, at_s)
        own[NEXT_S] = min(own[NEXT_S], source.ends_s + system.hop_s if source.made else source.due_s)


@compiled
def _plan_source(
    system: EngineTurns, works: Works, number: int, ends: Floats, counts: Floats, q_size: int, at_s: float
) -> None:
    source, own = works.sources[number], works.clock
    if source.next_of >= int(counts[-1] + 1e-9):
        source.due_s = math.inf
        return
    paced_s = source.read_s + rules.PACE_S
    source.due_s = max(paced_s, due_s(ends, counts, source.next_of + 1.0))
    if source.due_s > at_s:
        return
    rows = min(due_by(ends, counts, at_s) - source.next_of, quota(source.service_s, own[BUDGET_S], rules.FIRST_INTAKE))
    if q_size:
        rows = min(rows, _room(works, number, q_size))
    host = _seat(system, works, source.host, 0, len(works.hosts)) if rows > 0 else -1
    if host < 0:
        source.due_s = at_s + (rules.PACE_S if rows > 0 else rules.IDLE_S)
        return
    slower = _slower(system, own)
    source.host = host
    works.hosts[host].seats += 1
    works.hosts[host].shared_by = -1
    own[COMPUTING] += 1.0
    own[RUNNING] += 1.0
    begins_s = max(at_s + system.turn_s + system.hop_s, works.hosts[host].free_s)
    length_s = source.call_s + system.work_s + rows * (source.service_s + system.tuple_s)
    source.ends_s = works.hosts[host].free_s = begins_s + length_s * slower
    source.made, source.read_s = rows, at_s
    if q_size:
        _reserve(works, number, rows)


@compiled
def plan_lanes(
    system: EngineTurns, works: Works, late: Floats, q_size: int, at_s: float, random: np.random.Generator
) -> None:
    """Works for the lanes that are free and due, as far as there are seats and room. `late`: shares that are too old."""
    own, lanes = works.clock, len(works.lanes)
    place, starved, next_s = int(own[CURSOR]), -1, own[NEXT_S]
    for _ in range(lanes):
        place = place + 1 if place + 1 < lanes else 0
        lane = works.lanes[place]
        if lane.taken:
            next_s = min(next_s, lane.ends_s + system.hop_s)
            continue
        if not lane.queued:
            continue
        operator = works.operators[lane.operator]
        due = max(lane.ready_s, next_work_s(lane.queued, operator.expected_s, lane.given_s, at_s, rules.LANE_PACE_S))
        if due > at_s:
            next_s = min(next_s, due)
            continue
        rows = min(lane.queued, quota(operator.expected_s, own[BUDGET_S], rules.FIRST_TRY))
        if q_size:
            rows = min(rows, _room(works, len(works.sources) + lane.operator, q_size))
        host = lane.host
        if operator.computes and rows > 0:
            host = _seat(system, works, lane.host, lane.from_host, lane.to_host)
        if rows <= 0 or host < 0:
            if starved < 0:
                starved = place
            next_s = min(next_s, at_s + rules.IDLE_S)
            continue
        lane.given_s = at_s
        _give(system, works, place, rows, late[lane.operator], host, not q_size, random)
        if q_size:
            _reserve(works, len(works.sources) + lane.operator, rows)
        next_s = min(next_s, lane.ends_s + system.hop_s)
    # The first that was refused is the first that is looked at in the next turn.
    own[CURSOR] = starved - 1 if starved > 0 else lanes - 1
    own[NEXT_S] = next_s


@compiled
def _give(
    system: EngineTurns,
    works: Works,
    number: int,
    rows: int,
    late: float,
    host: int,
    may_share: bool,
    random: np.random.Generator,
) -> None:
    """A work for one lane: how long it takes, and what it needs."""
    own, lane = works.clock, works.lanes[number]
    operator = works.operators[lane.operator]
    start_s = lane.given_s + system.turn_s + system.hop_s
    # The oldest are in front.
    lane.taken, lane.receipts = rows, 1
    lane.late = min(rows, round(lane.queued * late)) if late else 0
    done, speed = rows - lane.late, works.node_speed[lane.node]
    each_s = operator.service_s * (1.0 + operator.bend * (operator.active - 1))
    mean_s = (operator.call_s + done * each_s) / speed if done else 0.0
    mean_s = max(mean_s, done * operator.limit_s * operator.active)
    served_s = mean_s
    if done and operator.spread:
        sigma2 = math.log1p(operator.spread**2 / done)
        noise = math.exp(math.sqrt(sigma2) * random.standard_normal() - sigma2 / 2)
        served_s = mean_s * noise
    around_s = system.work_s + rows * system.tuple_s
    own[RUNNING] += 1.0
    if operator.computes:
        _compute(system, works, number, host, start_s, mean_s, served_s, around_s, may_share)
        return
    process = works.hosts[lane.host]
    cost = thread_cost(system.thread_crowding, process.threads)
    # A thread that was asleep finds a core taken as often as cores are, and the interpreter as often as others need it.
    lock = lock_wait(own[DEMAND], _hosts(system), system.cores)
    asleep = max(1.0 / (1.0 - min(CROWDED, _taken(system, own))), lock)
    slower = _crowded(system, own) * cost * asleep
    cpu_s = operator.call_cpu_s + done * operator.cpu_s if done else 0.0
    length_s = served_s + around_s + (cpu_s + around_s) * (slower - 1.0)
    lane.ends_s = start_s + length_s
    lane.served_s, lane.usual_s = served_s + cpu_s * (slower - 1.0), mean_s + cpu_s * (slower - 1.0)
    lane.share = (cpu_s + around_s) * cost / length_s if length_s else 0.0
    own[DEMAND] += lane.share
    process.threads += 1


@compiled
def _compute(
    system: EngineTurns,
    works: Works,
    number: int,
    place: int,
    start_s: float,
    mean_s: float,
    served_s: float,
    around_s: float,
    may_share: bool,
) -> None:
    """A work in the computing seat of a host, behind the one that is there. Quiet lanes of one operator share one."""
    own, lane, host = works.clock, works.lanes[number], works.hosts[place]
    operator = works.operators[lane.operator]
    slower = _slower(system, own)
    quiet = may_share and shares_work(lane.taken, operator.expected_s)
    mates = host.shared if host.shared_by == lane.operator and host.shared_s == lane.given_s else 0
    if quiet and 0 < mates < rules.MOST_SHARED:
        around_s -= system.work_s
        lane.receipts = 0
        host.shared += 1
    else:
        host.seats += 1
        own[COMPUTING] += 1.0
        host.shared_by = lane.operator if quiet else -1
        host.shared, host.shared_s = 1, lane.given_s
    lane.host = place
    lane.ends_s = host.free_s = max(start_s, host.free_s) + (served_s + around_s) * slower
    lane.served_s, lane.usual_s, lane.share = served_s * slower, mean_s * slower, 1.0
    if not lane.receipts:
        # All that share a work end together.
        for other in range(operator.first, operator.end):
            its = works.lanes[other]
            if its.taken and its.host == place and its.given_s == lane.given_s:
                its.ends_s = lane.ends_s


@compiled
def _slower(system: EngineTurns, own: Floats) -> float:
    """How much longer computing takes because works and the driver need more cores than there are."""
    taken = _taken(system, own)
    if own[COPYING] > 0.0 and own[COMPUTING] < system.cores:
        # Copies are made all the time: the core that is free is not all free.
        taken += 1.0 / system.cores
    return float(
        max(1.0, taken)
        * _crowded(system, own)
        * process_cost(system.process_crowding, min(own[COMPUTING], _hosts(system)), system.cores)
    )


@compiled
def _taken(system: EngineTurns, own: Floats) -> float:
    """The share of the cores that works under way, the driver and copies of state need."""
    return float((own[DEMAND] + min(own[COMPUTING], _hosts(system)) + own[DRIVER] + own[COPYING]) / system.cores)


@compiled
def _hosts(system: EngineTurns) -> int:
    return system.hosts if system.hosts else system.cores


@compiled
def _crowded(system: EngineTurns, own: Floats) -> float:
    return float(1.0 + system.crowding * max(0.0, own[RUNNING] - system.cores))


@compiled
def _seat(system: EngineTurns, works: Works, home: int, first: int, end: int) -> int:
    """The host that computes for a lane, of those from `first` to before `end`: its home, or one that has nothing to compute;
    -1 while all have enough, or none is there."""
    hosts = works.hosts
    if home < first or home >= end or not hosts[home].up:
        home = -1
        for other in range(first, end):
            if hosts[other].up and (home < 0 or hosts[other].seats < hosts[home].seats):
                home = other
        if home < 0:
            return -1
    if hosts[home].seats:
        if works.clock[COMPUTING] < _hosts(system):
            for other in range(first, end):
                if not hosts[other].seats and hosts[other].up:
                    return other
        if hosts[home].seats >= rules.DEPTH:
            return -1
    return int(home)


@compiled
def _reserve(works: Works, head: int, rows: int) -> None:
    for place in range(works.heads[head].edge, works.heads[head].edge_end):
        edge = works.edges[place]
        if edge.to >= 0:
            target = works.operators[edge.to]
            lanes = target.active if target.even else 1
            target.reserved += math.ceil(rows * max(1.0, edge.share) / lanes)
            target.senders += 1


@compiled
def _reserve_all(works: Works) -> None:
    """The room that works under way may still need in the lanes behind them."""
    for operator in range(len(works.operators)):
        works.operators[operator].reserved = 0
        works.operators[operator].senders = 0
    for source in range(len(works.sources)):
        if works.sources[source].made:
            _reserve(works, source, works.sources[source].made)
    for lane in range(len(works.lanes)):
        if works.lanes[lane].taken:
            _reserve(works, len(works.sources) + works.lanes[lane].operator, works.lanes[lane].taken)


@compiled
def _room(works: Works, head: int, q_size: int) -> int:
    """The most tuples that the next work of a sender may take while full lanes behind it make it wait."""
    room = rules.MOST_ROWS
    for place in range(works.heads[head].edge, works.heads[head].edge_end):
        edge = works.edges[place]
        if edge.to < 0:
            continue
        target, fullest = works.operators[edge.to], 0
        for lane in range(target.first, target.first + target.active):
            fullest = max(fullest, works.lanes[lane].queued)
        free = max(0, q_size - fullest - target.reserved)
        lanes = target.active if target.even else 1
        room = min(room, fits(free, lanes, max(1.0, edge.share), target.senders))
    return room
