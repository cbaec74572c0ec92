"""The plan of a run's first tick: a new base begins, an old one goes on where it was."""

from elastream.engine.planner import Plan
from elastream.errors import SettingError
from elastream.lanes import Book, Entry
from elastream.topology import Graph, Kind

Sizes = dict[str, tuple[int, ...]]


def first_sizes(graph: Graph, start: int | None) -> Sizes:
    """As the topology says, or `start` replicas of every operator, as far as it may have them."""
    sizes: Sizes = {}
    for operator in graph.served:
        its = operator.replicas
        size = its.start if start is None else min(max(start, its.least), its.most)
        sizes[operator.name] = tuple(range(size))
    return sizes


def continued_plan(graph: Graph, book: Book, discard: tuple[str, ...], base: str, t_out_s: float | None) -> Plan:
    """Operators keep the lanes of their name; nobody's tuples are forgotten silently.

    `t_out_s` is for a stored plan that does not say its own.
    """
    for name in sorted({lane.operator for lane, queue in book.lanes.items() if len(queue)}):
        gone = name not in graph or graph[name].chained or graph[name].kind is Kind.SOURCE
        if gone and name not in (*discard, "dead-letters", *book.plan["outputs"]):
            raise SettingError(
                f"base {base}: {book.queued(name)} tuples wait for operator {name!r}, which this topology "
                f"does not have; put it back until they are served, or run with discard=({name!r},)"
            )
    stored = Plan.from_json(book.plan, t_out_s)
    active: Sizes = {operator.name: _kept_size(graph, operator.name, stored) for operator in graph.served}
    takes = tuple(take for take in stored.takes if take[0] in active)
    intakes = tuple(intake for intake in stored.intakes if intake.source in graph)
    return Plan(
        stored.planned_s,
        stored.budget_s,
        active,
        takes,
        intakes,
        stored.service_s,
        stored.fan_out,
        stored.outputs,
        again=stored.again,
        t_out_s=stored.t_out_s,
    )


def dropping(book: Book, names: tuple[str, ...], now_s: float) -> Entry:
    """An entry that drops everything that waits for these operators, and counts it."""
    dropped = [(lane, len(queue)) for lane, queue in book.lanes.items() if lane.operator in names and len(queue)]
    counts: dict[str, dict[str, float]] = {}
    for lane, rows in dropped:
        its = counts.setdefault(lane.operator, {"overflowed": 0})
        its["overflowed"] += rows
    consumed = tuple((lane.operator, lane.lane, rows) for lane, rows in dropped)
    return Entry(book.tick + 1, book.run, book.batch, now_s, consumed, counts=counts)


def _kept_size(graph: Graph, name: str, stored: Plan) -> tuple[int, ...]:
    sizes = graph[name].replicas
    if name not in stored.active:
        return tuple(range(sizes.start))
    return tuple(range(min(max(len(stored.active[name]), sizes.least), sizes.most)))
