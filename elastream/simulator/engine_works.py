"""The engine as the simulator sees it: the costs of turns and works, and tables of lanes, operators, sources and hosts.

A table is one array of records, so that a compiled function is handed a dozen arrays and not a hundred. What the record of a
run is made of are the same numbers: `Moving` has views of these tables.
"""

from typing import Any, NamedTuple

import numpy as np

from elastream import rules
from elastream.simulator.model import Model
from elastream.simulator.state import BUCKETS, EVEN, NOW, Flags, Floats, Moving

Records = Any
"""An array of records, as numpy and numba know them."""

(
    NEXT_S,
    REST_S,
    BUDGET_S,
    TURN_S,
    DEMAND,
    RUNNING,
    COMPUTING,
    DRIVER,
    CURSOR,
    CHANGED,
    SPAN_S,
    SEEN,
    SEEN_S,
    COPYING,
) = range(14)
"""In `Works.clock`: when something is due, when the driver may turn again, how long a work may take, the mean length of a
turn, the cores that works under way need, how many there are, how many of them compute, the core that the driver needs, the
lane that is looked at first, whether something was changed from outside since the last turn, and of the last window: how long it
was (0: there is none), how many tuples finished in it, and when it ended; and the cores that copies of keyed state need."""
WORKS_CLOCKS = 14


class EngineTurns(NamedTuple):
    """Costs of the driver and of hosts on a machine, and the engine's settings."""

    turn_s: float
    """One turn of the driver: commit and plan."""
    receipt_s: float
    """Each receipt more in a turn, with the work that follows it."""
    work_s: float
    """Processor time of a host per work: read, write, the receipt."""
    tuple_s: float
    """Processor time of a host per tuple that it routes and writes."""
    hop_s: float
    """From the driver to a host, or back."""
    cores: int
    slots: int
    """The most replicas of all operators together."""
    budget_s: float
    max_budget_s: float
    crowding: float = 0.0
    """How much slower everything gets for each work under way beyond the cores, besides sharing them."""
    jumps: bool = True
    """False: every turn of a long run is simulated, also while nothing changes."""
    hosts: int = 0
    """0: one per core."""
    thread_crowding: float = 0.0
    """How much more a thread computes to do the same, for each other that has a work in its host."""
    process_crowding: float = 0.0
    """How much slower computing gets for each host per core beyond the first, besides sharing the cores."""

    @property
    def most_computing(self) -> int:
        """Works that compute at once."""
        return self.hosts or self.cores


LANE = np.dtype(
    [
        ("queued", "i8"),
        ("taken", "i8"),  # tuples of the work under way, which still count as queued; 0: the lane is free
        ("ends_s", "f8"),  # when that work ends
        ("given_s", "f8"),  # when it was given
        ("operator", "i8"),
        ("received", "i8"),
        ("processed", "i8"),
        ("dropped", "i8"),
        ("late", "i8"),  # tuples of the work that are too old to be served
        ("receipts", "i8"),  # 1, or 0 for a lane that shares the work of another
        ("host", "i8"),  # that serves it, or served it last
        ("from_host", "i8"),  # the hosts that may serve it begin here
        ("to_host", "i8"),  # and end before this one
        ("node", "i8"),
        ("served_s", "f8"),  # what the receipt will say
        ("usual_s", "f8"),  # the same without what is random
        ("share", "f8"),  # of a core that the work needs
        ("busy_s", "f8"),
        ("ready_s", "f8"),  # from when on it serves: a new container takes its time to start
        ("busy_before", "f8"),  # the share of the last interval that it was busy, and what it was sent since
        ("window_busy_s", "f8"),  # busy_s when the present window began
        ("before", "i8"),  # received before a jump
    ]
)
OPERATOR = np.dtype(
    [
        ("first", "i8"),
        ("end", "i8"),
        ("active", "i8"),
        ("asked", "i8"),
        ("computes", "i8"),
        ("expected_s", "f8"),  # the driver's estimate of a service
        ("seen", "f8"),  # tuples that the estimate is of
        ("service_s", "f8"),
        ("bend", "f8"),
        ("limit_s", "f8"),
        ("call_s", "f8"),
        ("cpu_s", "f8"),
        ("call_cpu_s", "f8"),
        ("spread", "f8"),
        ("usual_s", "f8"),  # seconds of all works so far, without what is random
        ("reserved", "i8"),  # tuples that works under way may put into each of its lanes
        ("senders", "i8"),  # works under way that send to it
        ("even", "i8"),  # 1 where tuples are dealt out in turn
        ("each_s", "f8"),  # seconds per tuple in the last window
        ("window_usual_s", "f8"),
        ("window_processed", "i8"),
    ]
)
SOURCE = np.dtype(
    [
        ("next_of", "i8"),
        ("read", "i8"),
        ("made", "i8"),  # tuples of the work under way
        ("host", "i8"),
        ("ends_s", "f8"),
        ("read_s", "f8"),  # when it had its last work
        ("due_s", "f8"),  # when its next tuple is due
        ("service_s", "f8"),
        ("call_s", "f8"),
        ("rate", "f8"),  # tuples per second in the last window
    ]
)
HOST = np.dtype(
    [
        ("free_s", "f8"),  # when its computing seat is free
        ("seats", "i8"),  # computing works that it has
        ("up", "i8"),  # 0 while its machine is not there
        ("threads", "i8"),  # works that wait side by side in it
        ("shared_by", "i8"),  # the operator whose quiet lanes share its newest work; -1: none do
        ("shared", "i8"),  # how many lanes share it
        ("shared_s", "f8"),  # when it was given
    ]
)
HEAD = np.dtype([("edge", "i8"), ("edge_end", "i8"), ("entered", "i8"), ("finished", "i8"), ("lost", "f8")])
EDGE = np.dtype([("to", "i8"), ("over_edge", "i8"), ("share", "f8"), ("carry", "f8")])


class Works(NamedTuple):
    """Everything that moves in a simulated engine."""

    clock: Floats
    """See NEXT_S and the following."""
    lanes: Records
    operators: Records
    sources: Records
    hosts: Records
    heads: Records
    edges: Records
    node_speed: Floats
    window: Floats
    """Of the last window: latencies by bucket, their sum, the number of turns; while one goes on, as they were at its beginning."""


def begin_works(model: Model, moving: Moving, system: EngineTurns) -> tuple[Works, Moving]:
    """Nothing is under way yet. Gives the tables, and `moving` as views of them where they have the same numbers."""
    fixed = model.fixed
    clock = np.zeros(WORKS_CLOCKS)
    clock[BUDGET_S], clock[CURSOR] = system.budget_s, model.lanes - 1
    lanes = np.zeros(model.lanes, LANE)
    lanes["operator"] = np.repeat(np.arange(len(model.operators)), np.diff(fixed.first))
    lanes["given_s"] = -np.inf
    lanes["host"] = np.arange(model.lanes) % system.most_computing
    lanes["to_host"] = system.most_computing
    operators = np.zeros(len(model.operators), OPERATOR)
    operators["first"], operators["end"] = fixed.first[:-1], fixed.first[1:]
    operators["computes"] = fixed.cpu_share >= rules.COMPUTING_SHARE
    operators["cpu_s"] = fixed.service_s * fixed.cpu
    operators["even"] = fixed.routing == EVEN
    for name in ("service_s", "bend", "limit_s", "call_s", "call_cpu_s", "spread"):
        operators[name] = getattr(fixed, name)
    sources = np.zeros(len(model.sources), SOURCE)
    sources["read_s"] = -np.inf
    sources["service_s"], sources["call_s"] = fixed.source_service_s, fixed.source_call_s
    hosts = np.zeros(system.most_computing, HOST)
    hosts["free_s"], hosts["shared_by"], hosts["up"] = -np.inf, -1, 1
    heads = np.zeros(len(sources) + len(operators), HEAD)
    heads["edge"], heads["edge_end"] = fixed.edge_first[:-1], fixed.edge_first[1:]
    edges = np.zeros(len(model.edges), EDGE)
    edges["to"], edges["share"] = fixed.edge_to, fixed.edge_share
    views: dict[str, Any] = {}
    for table in (lanes, operators, sources, heads, edges):
        for name in set(table.dtype.names or ()) & set(Moving._fields):
            table[name] = getattr(moving, name)
            views[name] = table[name]
    works = Works(clock, lanes, operators, sources, hosts, heads, edges, fixed.node_speed, np.zeros(BUCKETS + 2))
    return works, moving._replace(**views)


def forget_works(works: Works, lanes: Flags) -> None:
    """The works of these lanes did not happen: whoever did them is gone. Their tuples wait again."""
    for number in np.flatnonzero(lanes & (works.lanes["taken"] > 0)):
        lane = works.lanes[number]
        lane["taken"] = 0
        works.clock[RUNNING] -= 1.0
        if works.operators[lane["operator"]]["computes"]:
            works.clock[COMPUTING] -= lane["receipts"]
            works.hosts[lane["host"]]["seats"] -= lane["receipts"]
        else:
            works.clock[DEMAND] -= lane["share"]
            works.hosts[lane["host"]]["threads"] -= 1
    works.clock[CHANGED] = 1.0


def forget_reading(works: Works, hosts: Flags) -> None:
    """The works of sources in these hosts did not happen."""
    for source in works.sources:
        if source["made"] and hosts[source["host"]]:
            source["made"] = 0
            works.hosts[source["host"]]["seats"] -= 1
            works.clock[[COMPUTING, RUNNING]] -= 1.0


def stand_still(works: Works, moving: Moving, until_s: float) -> None:
    """Everything stops, and goes on at this second."""
    forget_works(works, works.lanes["taken"] > 0)
    forget_reading(works, np.ones(len(works.hosts), np.bool_))
    works.hosts["free_s"] = -np.inf
    works.clock[REST_S] = moving.clock[NOW] = until_s
