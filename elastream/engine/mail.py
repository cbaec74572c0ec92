"""What the driver tells Spark of the tick to come: a plan and the book enter; mail and the routing of branches leave."""

from elastream.engine.executors import Capacity
from elastream.engine.frame_plan import Tasks, make_again, make_frames
from elastream.engine.loads import Loads
from elastream.engine.planner import WAITING_TASKS, Plan, left_after, make_tasks
from elastream.engine.tick_source import Mail
from elastream.engine.work import TaskWork
from elastream.lanes import Book, LaneId
from elastream.topology import Graph

WARM_S = 0.7
"""How long the first tasks wait, so that every worker process has been started before there is work for it."""


def make_mail(
    graph: Graph, plan: Plan, book: Book, capacity: Capacity, loads: Loads, not_before_s: float, *, warm: bool
) -> Mail:
    """With `warm`, there are tasks that only wait, as many as the run may ever need at once."""
    tasks = make_tasks(graph, plan, book, book.tick + 1, capacity.cores, loads)
    if warm:
        lanes = sum(operator.replicas.most for operator in graph.served if not operator.waits)
        if any(operator.waits for operator in graph.served):
            lanes += capacity.cores * WAITING_TASKS
        idle = TaskWork(book.tick + 1, plan.planned_s, {}, {}, {}, warm_s=WARM_S)
        tasks += [idle] * max(0, min(capacity.slots, lanes + len(graph.sources)) - len(tasks))
    frames = make_frames(graph, plan, book, book.tick + 1, capacity.cores)
    again = make_again(plan.again, book) if plan.again else {}
    return Mail(
        book.tick,
        # JSON knows no infinity that every reader takes; this is after the sun has gone out.
        min(not_before_s, 1e18),
        tuple(task.to_json() for task in tasks),
        _as_json(frames),
        plan.again.entry if plan.again else -1,
        _as_json(again),
    )


def make_routing(graph: Graph, plan: Plan, book: Book, loads: Loads, now_s: float) -> TaskWork:
    """What the branches of streaming DataFrames need to route their rows in this tick; rows without a due time are due now."""
    queued = {name: tuple(len(book.queue(LaneId(name, lane))) for lane in lanes) for name, lanes in plan.active.items()}
    senders = [name for name, _, _ in plan.takes] + [source.name for source in graph.sources]
    given = loads.of(plan.active, senders, left_after(plan, book))
    known = {name: state["once"] for name, state in book.sources.items() if "once" in state}
    return TaskWork(book.tick + 1, now_s, plan.active, queued, {}, loads=given, memories=known)


def _as_json(tasks: Tasks) -> dict[str, tuple[str, ...]]:
    return {name: tuple(task.to_json() for task in its) for name, its in tasks.items()}
