"""How containers are in one another's way: threads that want the interpreter of one process, processes that want a core.

Pure functions that both fidelities call. `elastream bench platform` measures the two numbers they need.
"""

LOCKED = 0.98
"""A thread finds the interpreter of its process taken for no more than this share of the time."""


def lock_wait(demand: float, processes: int, cores: int) -> float:
    """How many times as long computing takes because threads need the interpreters of their processes for so many cores' time.

    With a process per core or more, it is the cores that are short.
    """
    return 1.0 / (1.0 - min(LOCKED, demand / processes)) if processes < cores else 1.0


def thread_cost(thread_crowding: float, others: float) -> float:
    """How much more a thread computes to do the same, for each other that has a work in its process."""
    return 1.0 + thread_crowding * others


def process_cost(process_crowding: float, processes: float, cores: float) -> float:
    """How much longer computing takes, besides sharing the cores, for each process per core beyond the first."""
    return 1.0 + process_crowding * max(0.0, processes / cores - 1.0)
