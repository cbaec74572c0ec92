"""What Spark reads of the lanes of dataframe operators: a plan enters, tasks leave; those of the tick before, too."""

from elastream.engine.again import Again
from elastream.engine.planner import WORK_S, Plan, lane_tasks, lane_work, pack
from elastream.engine.work import LaneWork, SourceWork, TaskWork
from elastream.lanes import Book, LaneId
from elastream.topology import Graph, Kind

Tasks = dict[str, list[TaskWork]]
"""Per operator, those that read its lanes."""


def make_frames(graph: Graph, plan: Plan, book: Book, tick: int, cores: int) -> Tasks:
    """The lanes that the plan takes; those with little work share a task."""
    works: dict[str, list[tuple[float, LaneWork | SourceWork]]] = {}
    for operator, lane, rows in plan.takes:
        if graph[operator].kind is Kind.DATAFRAME:
            expected_s = WORK_S + rows * plan.service_s.get(operator, 1.0)
            works.setdefault(operator, []).append((expected_s, lane_work(plan, book, operator, lane, rows)))
    return {name: lane_tasks(book, tick, plan, pack(its, cores)) for name, its in works.items()}


def taken(plan: Plan, book: Book, operators: frozenset[str]) -> Again:
    """What the plan takes of the lanes of these operators, before the book forgets it."""
    lanes = [
        (operator, lane, tuple(book.queue(LaneId(operator, lane)).peek(rows)))
        for operator, lane, rows in plan.takes
        if operator in operators
    ]
    return Again(book.tick, plan.planned_s, tuple(lanes), plan.t_out_s)


def make_again(again: Again, book: Book) -> Tasks:
    """The same lanes once more, a task for each."""
    tasks: Tasks = {}
    for operator, lane, slices in again.lanes:
        work = LaneWork(operator, lane, slices, budget_s=0.0, chunk=1)
        tasks.setdefault(operator, []).extend(lane_tasks(book, again.entry + 1, again, [[work]]))
    return tasks
