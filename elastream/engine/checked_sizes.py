"""Checks of sizes that people and other processes ask a run for, before anything is changed."""

from elastream.errors import SettingError
from elastream.fleet import Level
from elastream.topology import Graph


def check_served(graph: Graph, operator: str, what: str, having: str) -> None:
    """Raise if the graph has no operator of this name with replicas or lanes of its own."""
    if operator not in graph or graph[operator] not in graph.served:
        names = ", ".join(o.name for o in graph.served)
        raise SettingError(f"{what}: no operator {operator!r} with {having} of its own; there are {names}")


def check_size(graph: Graph, operator: str, replicas: int) -> None:
    """Raise if an operator cannot have this number of replicas."""
    check_served(graph, operator, "scale", "replicas")
    sizes = graph[operator].replicas
    if isinstance(replicas, bool) or not isinstance(replicas, int) or not sizes.least <= replicas <= sizes.most:
        raise SettingError(f"operator {operator!r}: replicas must be {sizes.least}..{sizes.most}, got {replicas!r}")


def check_level(level: str | Level, count: int) -> Level:
    """The level of this name; raises if there is none, or the number is out of range."""
    names = [known.value for known in Level]
    if isinstance(level, str) and level not in names:
        raise SettingError(f"level {level!r}: there are {', '.join(names)}")
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise SettingError(f"level {Level(level).value!r}: expected a whole number from 1 on, got {count!r}")
    return Level(level)
