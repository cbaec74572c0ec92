"""The plan of the next tick: which lanes are served, how many tuples each, and which of them share a task."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from elastream.engine.again import Again
from elastream.engine.collecting import collecting_sinks, emptied_sinks
from elastream.engine.estimates import Estimates
from elastream.engine.loads import Loads
from elastream.engine.room import MOST_ROWS, Room
from elastream.engine.serving import CHUNK_S
from elastream.engine.settings import Settings
from elastream.engine.sources import Replay
from elastream.engine.work import LaneWork, SourceWork, TaskWork
from elastream.lanes import Book, LaneId
from elastream.topology import Graph, Kind

FIRST_TRY = 64
"""Tuples for a lane whose operator has never been timed."""

FIRST_INTAKE = 10_000
"""The same for a replay."""

FIRST_WRITE = 10_000
"""The same where Spark serves: a job for few tuples takes as long as one for many, which says nothing of a tuple."""

MOST_BYTES = 64 << 20
"""Nor more bytes than this: a task holds them in memory."""

SHARED_TASK_S = 0.01
"""Lanes with less work than this share a task: a task costs about as much as this by itself."""

WAITING_TASKS = 2
"""Tasks for each core among which lanes of operators that wait are shared out."""

HORIZON_S = 30.0
"""How far ahead of the plan's clock a source may read, should the tick begin late."""

WORK_S = 0.0005
"""What reading and writing a lane's slices costs at least."""

OVERRUN = 1.5
"""A task may exceed the time it was planned for by this factor before the clock stops it."""


@dataclass(frozen=True)
class Intake:
    """What a replay source may make."""

    source: str
    part: int
    first: int
    stop: int
    due_only: bool
    """True: the task takes of these what is due when it runs."""


@dataclass(frozen=True)
class Plan:
    """Stored with the entry before it, so that a tick that is repeated does the same."""

    planned_s: float
    budget_s: float
    active: dict[str, tuple[int, ...]]
    takes: tuple[tuple[str, int, int], ...] = ()
    """(operator, lane, tuples)."""
    intakes: tuple[Intake, ...] = ()
    service_s: dict[str, float] = field(default_factory=dict)
    fan_out: dict[str, float] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    """Operators whose lanes are read from outside: what waits there has finished."""
    wrote_s: dict[str, float] = field(default_factory=dict)
    """Per sink that collects before it writes, when everything that waited for it was last taken."""
    again: Again | None = None
    """What the operators with state took in the tick before."""
    t_out_s: float | None = None
    """Tuples that were older than this when it was made are dropped, whatever the settings say when a tick is repeated."""

    def to_json(self) -> dict[str, Any]:
        again = vars(self.again) if self.again else None
        return vars(self) | {"intakes": [vars(intake) for intake in self.intakes], "again": again}

    @classmethod
    def from_json(cls, document: dict[str, Any], t_out_s: float | None = None) -> Plan:
        """`t_out_s` is for a plan that does not say its own."""
        own = {"t_out_s": t_out_s}
        return cls(
            **{
                **own,
                **document,
                "active": {name: tuple(lanes) for name, lanes in document["active"].items()},
                "takes": tuple((op, lane, rows) for op, lane, rows in document["takes"]),
                "intakes": tuple(Intake(**intake) for intake in document["intakes"]),
                "outputs": tuple(document["outputs"]),
                "again": Again.from_json(own | document["again"]) if document.get("again") else None,
            }
        )

    @property
    def has_lane_work(self) -> bool:
        return bool(self.takes)


def make_plan(
    graph: Graph,
    settings: Settings,
    book: Book,
    estimates: Estimates,
    active: dict[str, tuple[int, ...]],
    slots: int,
    now_s: float,
    *,
    elastic: bool = False,
    wrote_s: dict[str, float] | None = None,
    again: Again | None = None,
) -> Plan:
    """Give every lane that has work as many tuples as its operator is expected to serve in the tick's budget.

    With `elastic`, somebody gives more replicas to operators that fall behind: ticks then grow for those only that have all
    of theirs. A longer tick makes every tuple's way through all operators longer.
    """
    waiting = {lane: len(queue) for lane, queue in book.lanes.items() if len(queue) and _is_served(graph, lane)}
    collecting = collecting_sinks(graph, settings, book, waiting, wrote_s or {}, now_s)
    waiting = {lane: rows for lane, rows in waiting.items() if lane.operator not in collecting}
    stuck = {lane: rows for lane, rows in waiting.items() if not elastic or _has_all(graph, lane.operator, active)}
    budget_s = _budget(settings, estimates, stuck)
    room = Room(graph, settings, book, active, estimates)
    wanted = {
        lane: book.lanes[lane].portion(
            _quota(estimates, lane.operator, budget_s, FIRST_WRITE if graph[lane.operator].by_spark else FIRST_TRY),
            MOST_BYTES,
        )
        for lane in waiting
    }
    # Lanes of operators that wait are threads of tasks that are there anyway.
    tasks = {lane: rows for lane, rows in wanted.items() if not _waits(graph, lane.operator)}
    expected = sum(rows * estimates.service_s.get(lane.operator, 0.0) for lane, rows in tasks.items())
    crowded = min(1.0, slots * budget_s / expected) if expected else 1.0
    takes = []
    for lane, rows in wanted.items():
        fits = rows * crowded if lane in tasks else rows
        allowed = min(max(1, int(fits)), room.for_sender(lane.operator))
        if allowed:
            takes.append((lane.operator, lane.lane, allowed))
    intakes = [
        intake
        for source in graph.sources
        if isinstance(source.source, Replay)
        for intake in _intakes(
            source.name, source.source, source.replicas.start, book, estimates, room, budget_s, now_s
        )
    ]
    outputs = tuple(operator.name for operator in graph.operators if operator.kind is Kind.OUTPUT)
    return Plan(
        now_s,
        budget_s,
        active,
        tuple(takes),
        tuple(intakes),
        dict(estimates.service_s),
        dict(estimates.fan_out),
        outputs,
        {**(wrote_s or {}), **emptied_sinks(graph, waiting, takes, now_s)},
        again,
        settings.t_out_s,
    )


def make_tasks(
    graph: Graph, plan: Plan, book: Book, tick: int, cores: int, loads: Loads | None = None
) -> list[TaskWork]:
    """Turn a plan into tasks: a lane with much to do has one for itself, the others share."""
    queued = {name: tuple(len(book.queue(LaneId(name, lane))) for lane in lanes) for name, lanes in plan.active.items()}
    works: list[tuple[float, LaneWork | SourceWork]] = []
    for operator, lane, rows in plan.takes:
        if not graph[operator].by_spark:
            each_s = plan.service_s.get(operator, 1.0)
            works.append((WORK_S + rows * each_s, lane_work(plan, book, operator, lane, rows)))
    for intake in plan.intakes:
        arrivals = graph[intake.source].source.arrivals.part(intake.first, intake.stop)
        origin_s = book.sources[intake.source]["origin_s"]
        works.append((WORK_S, SourceWork(**vars(intake), origin_s=origin_s, arrivals=arrivals)))
    senders = [name for name, _, _ in plan.takes] + [intake.source for intake in plan.intakes]
    given = loads.of(plan.active, senders, left_after(plan, book)) if loads else {}
    waiting: list[tuple[float, LaneWork | SourceWork]] = []
    others: list[tuple[float, LaneWork | SourceWork]] = []
    for seconds, its in works:
        long_waits = seconds >= SHARED_TASK_S and isinstance(its, LaneWork) and _waits(graph, its.operator)
        (waiting if long_waits else others).append((seconds, its))
    shares = [(share, False) for share in pack(others, cores)]
    shares += [(share, True) for share in _level(waiting, min(len(waiting), cores * WAITING_TASKS))]
    tasks = []
    for share, side_by_side in shares:
        lanes = tuple(work for work in share if isinstance(work, LaneWork))
        sources = tuple(work for work in share if isinstance(work, SourceWork))
        work = TaskWork(tick, plan.planned_s, plan.active, queued, _schemas(book, lanes), lanes, sources, given)
        tasks.append(replace(work, side_by_side=side_by_side, t_out_s=plan.t_out_s))
    return tasks


def lane_tasks(
    book: Book, tick: int, plan: Plan | Again, shares: Sequence[Sequence[LaneWork | SourceWork]]
) -> list[TaskWork]:
    """Tasks that read lanes and do nothing else."""
    tasks = []
    for share in shares:
        lanes = tuple(work for work in share if isinstance(work, LaneWork))
        tasks.append(TaskWork(tick, plan.planned_s, {}, {}, _schemas(book, lanes), lanes, t_out_s=plan.t_out_s))
    return tasks


def make_writes(graph: Graph, plan: Plan, book: Book, tick: int) -> list[TaskWork]:
    """The lanes that Spark writes by jobs of its own, each as a task."""
    works = [lane_work(plan, book, *take) for take in plan.takes if graph[take[0]].writer is not None]
    return lane_tasks(book, tick, plan, [[work] for work in works])


def lane_work(plan: Plan, book: Book, operator: str, lane: int, rows: int) -> LaneWork:
    service_s = plan.service_s.get(operator)
    slices = tuple(book.queue(LaneId(operator, lane)).peek(rows))
    chunk = FIRST_TRY if service_s is None else max(1, int(CHUNK_S / max(service_s, 1e-9)))
    return LaneWork(operator, lane, slices, plan.budget_s * OVERRUN, min(chunk, MOST_ROWS))


def _schemas(book: Book, lanes: tuple[LaneWork, ...]) -> dict[str, str]:
    return {piece.schema: book.schemas[piece.schema] for work in lanes for piece in work.slices}


def left_after(plan: Plan, book: Book) -> dict[LaneId, int]:
    """What waits in the lanes once the plan has been carried out."""
    taken = {LaneId(operator, lane): rows for operator, lane, rows in plan.takes}
    return {lane: len(queue) - taken.get(lane, 0) for lane, queue in book.lanes.items()}


def pack(works: list[tuple[float, LaneWork | SourceWork]], cores: int) -> list[list[LaneWork | SourceWork]]:
    """Those with much work alone; the rest, largest first, each into the task that has least so far."""
    alone = [[work] for seconds, work in works if seconds >= SHARED_TASK_S]
    small = [(seconds, work) for seconds, work in works if seconds < SHARED_TASK_S]
    total = sum(seconds for seconds, _ in small)
    bins = min(len(small), max(math.ceil(total / SHARED_TASK_S), 1 if alone else min(cores, 2)))
    return alone + _level(small, bins)


def _level(works: list[tuple[float, LaneWork | SourceWork]], bins: int) -> list[list[LaneWork | SourceWork]]:
    """The largest first, each into the bin that has least so far."""
    shared: list[list[LaneWork | SourceWork]] = [[] for _ in range(bins)]
    loads = [(0.0, number) for number in range(bins)]
    for seconds, index in sorted(((seconds, i) for i, (seconds, _) in enumerate(works)), reverse=True):
        load, number = heapq.heappop(loads)
        shared[number].append(works[index][1])
        heapq.heappush(loads, (load + seconds, number))
    return shared


def _is_served(graph: Graph, lane: LaneId) -> bool:
    return lane.operator in graph and graph[lane.operator].kind is not Kind.OUTPUT


def _waits(graph: Graph, head: str) -> bool:
    """All that runs in its task allows threads."""
    return all(member.waits for member in graph.chain(head))


def _has_all(graph: Graph, operator: str, active: dict[str, tuple[int, ...]]) -> bool:
    return len(active[operator]) == graph[operator].replicas.most


def _budget(settings: Settings, estimates: Estimates, waiting: dict[LaneId, int]) -> float:
    """A quarter of the longest backlog, within the limits: the more waits, the less is spent on ticks."""
    backlog_s = max((rows * estimates.service_s.get(lane.operator, 0.0) for lane, rows in waiting.items()), default=0.0)
    return min(max(settings.budget_s, backlog_s / 4), settings.max_budget_s)


def _quota(estimates: Estimates, operator: str, budget_s: float, first: int) -> int:
    service_s = estimates.service_s.get(operator)
    if service_s is None:
        return first
    return int(min(max(1.0, budget_s / max(service_s, 1e-9)), MOST_ROWS))


def _intakes(
    name: str, replay: Replay, parts: int, book: Book, estimates: Estimates, room: Room, budget_s: float, now_s: float
) -> list[Intake]:
    """One range for one replica, read up to the moment the task runs; for more, equal parts of what is due now."""
    state = book.sources.get(name)
    if state is None or state["next"] >= replay.arrivals.total:
        return []
    quota = _quota(estimates, name, budget_s, FIRST_INTAKE)
    first = state["next"]
    if parts == 1:
        # What will be due by the time the task runs, with much to spare.
        soon = replay.arrivals.due_by(now_s - state["origin_s"] + HORIZON_S)
        stop = min(first + min(quota, room.for_sender(name)), max(soon, first + 1))
        return [Intake(name, 0, first, stop, due_only=True)] if stop > first else []
    stop = min(replay.arrivals.due_by(now_s - state["origin_s"]), first + quota * parts, first + room.for_sender(name))
    edges = [first + (stop - first) * part // parts for part in range(parts + 1)]
    return [Intake(name, part, a, b, due_only=False) for part, (a, b) in enumerate(pairwise(edges)) if b > a]
