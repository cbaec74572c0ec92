"""From a graph and what is known of its operators to the arrays of a simulation."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from elastream.errors import SettingError
from elastream.routing import SimulatedAs
from elastream.simulator.popularity import Popularity
from elastream.simulator.profile import OperatorTimes
from elastream.simulator.state import (
    BUCKETS,
    BUSY,
    CLOCKS,
    DRAWN,
    EVEN,
    EVERY,
    MERGED,
    REDIRECTED,
    REDIRECTS,
    SHORTEST,
    WEIGHTED,
    Fixed,
    Floats,
    Moving,
)
from elastream.topology import Graph, Kind, Operator
from elastream.workload import Arrivals

TICKS_KEPT = 4096

ROUTING = {
    SimulatedAs.EVEN: EVEN,
    SimulatedAs.POPULARITY: WEIGHTED,
    SimulatedAs.FIRST: WEIGHTED,
    SimulatedAs.EVERY: EVERY,
    SimulatedAs.BUSY: BUSY,
    SimulatedAs.SHORTEST: SHORTEST,
    SimulatedAs.REDIRECTED: REDIRECTED,
    SimulatedAs.DRAWN: DRAWN,
}
"""Model of a grouping -> its number in compiled code. Keyed groupings are different: key groups move. Where parts of a state can be
merged, redirected tuples go by load whatever their key is, as in the paper."""


@dataclass(frozen=True)
class Node:
    """A machine of a cluster."""

    cores: float
    speed: float = 1.0
    """How fast it serves, against the machine of the profile."""
    memory_gb: float = 16.0
    """How many processes fit on it."""


@dataclass(frozen=True)
class Model:
    """A graph as arrays, and where its names are in them."""

    graph: Graph
    sources: tuple[Operator, ...]
    operators: tuple[Operator, ...]
    """Those with lanes; outputs have none."""
    fixed: Fixed
    edges: tuple[tuple[str, str], ...]
    """Names of the two ends of each edge; the head of a chain stands for it."""
    popularity: Popularity
    """Of the keys by which tuples are routed."""
    nodes: tuple[Node, ...]
    spikes: tuple[tuple[float, float], ...] = ()
    """From when to when spikes were put onto what arrives."""
    heats: tuple[tuple[float, Popularity], ...] = ()
    """From which second on keys are how popular, where data spikes make some of them hot."""

    @property
    def lanes(self) -> int:
        return int(self.fixed.first[-1])

    def begin(self, sizes: Mapping[str, int]) -> Moving:
        """Nothing has happened yet, and every operator has its size."""
        lanes, operators, sources = self.lanes, len(self.operators), len(self.sources)
        heads, edges = sources + operators, len(self.edges)
        active = np.array([sizes[operator.name] for operator in self.operators], np.int64)
        moving = Moving(
            clock=np.zeros(CLOCKS),
            queued=np.zeros(lanes, np.int64),
            active=active,
            asked=active.copy(),
            ready_s=np.zeros(lanes),
            weight=np.zeros(lanes),
            phase=np.zeros(operators),
            carry=np.zeros(edges),
            credit=np.zeros(lanes),
            expected_s=self.fixed.service_s.copy(),
            busy_before=np.zeros(lanes),
            redirect=np.zeros((operators, REDIRECTS)),
            next_of=np.zeros(sources, np.int64),
            refused=np.zeros(sources, np.int64),
            sent_s=np.zeros(0),
            node=np.zeros(lanes, np.int64),
            node_up=np.ones(len(self.nodes), np.bool_),
            received=np.zeros(lanes, np.int64),
            processed=np.zeros(lanes, np.int64),
            dropped=np.zeros(lanes, np.int64),
            busy_s=np.zeros(lanes),
            over_edge=np.zeros(edges, np.int64),
            read=np.zeros(sources, np.int64),
            entered=np.zeros(heads, np.int64),
            finished=np.zeros(heads, np.int64),
            lost=np.zeros(heads),
            waits=np.zeros(BUCKETS),
            ticks_s=np.zeros(TICKS_KEPT),
        )
        self.weigh(moving)
        return moving

    def weigh(self, moving: Moving) -> None:
        """Where tuples name their lane, or all go to the first: what part of them each active lane gets."""
        for place, operator in enumerate(self.operators):
            grouping = self.graph.edges_into(operator.name)[0].grouping
            if self.fixed.routing[place] != WEIGHTED or grouping.keyed:
                continue
            first, end, active = self.fixed.first[place], self.fixed.first[place + 1], int(moving.asked[place])
            moving.weight[first:end] = 0.0
            if grouping.simulated_as is SimulatedAs.FIRST:
                moving.weight[first] = 1.0
            else:
                moving.weight[first : first + active] = self.popularity.direct(active)


def make_model(
    graph: Graph,
    times: Mapping[str, OperatorTimes],
    arrivals: Mapping[str, Arrivals],
    *,
    added_s: float = 0.0,
    nodes: Sequence[Node],
    keys: int = 1000,
    zipf: float = 0.0,
) -> Model:
    """`added_s` is waited in every operator, for each tuple."""
    for edge in graph.edges:
        if edge.grouping.simulated_as is None:
            raise SettingError(
                f"edge {edge.source!r} -> {edge.target!r}: grouping {edge.grouping} cannot be simulated, because there are no "
                "tuples that its function could see; simulate with shuffle, fields or partial_key"
            )
    sources = graph.sources
    operators = tuple(operator for operator in graph.served if operator.kind is not Kind.OUTPUT)
    for operator in (*sources, *operators):
        if operator.name not in times:
            raise SettingError(f"operator {operator.name!r}: nothing is known of its times; calibrate the application")
    place = {operator.name: number for number, operator in enumerate(operators)}
    own = [times[operator.name] for operator in operators]
    service = np.array([its.service_s + added_s for its in own])
    call = np.array([its.call_s for its in own])
    computed = np.array([(its.service_s + its.call_s) * its.cpu for its in own])
    first = np.concatenate([[0], np.cumsum([operator.replicas.most for operator in operators])]).astype(np.int64)
    edge_first, edge_to, edge_share, names = [0], [], [], []
    for head in (*sources, *operators):
        for edge in graph.edges_leaving(head.name):
            edge_to.append(place.get(edge.target, -1))
            edge_share.append(times[head.name].shares.get(edge.target, 1.0))
            names.append((head.name, edge.target))
        edge_first.append(len(edge_to))
    reach, ends = _reach(sources, operators, arrivals, edge_first, edge_to, edge_share)
    due = [arrivals[source.name] for source in sources]
    all_ends, all_counts = _together(due)
    fixed = Fixed(
        first=first,
        service_s=service,
        bend=np.array([its.bend for its in own]),
        limit_s=np.array([1.0 / its.most_per_s if its.most_per_s else 0.0 for its in own]),
        cpu=np.array([its.service_s * its.cpu for its in own]) / np.maximum(service, 1e-12),
        spread=np.array([(its.service_s + its.call_s) * its.spread for its in own]) / np.maximum(service + call, 1e-12),
        call_s=call,
        call_cpu_s=np.array([its.call_s * its.cpu for its in own]),
        cpu_share=computed / np.maximum(service + call, 1e-12),
        routing=np.array([_routing(graph, operator) for operator in operators], np.int64),
        edge_first=np.array(edge_first, np.int64),
        edge_to=np.array(edge_to, np.int64),
        edge_share=np.array(edge_share, np.float64),
        splits=np.array(
            [end - begin > 1 and math.isclose(sum(edge_share[begin:end]), 1.0) for begin, end in pairwise(edge_first)]
        ),
        source_service_s=np.array([max(times[source.name].service_s, 1e-7) for source in sources]),
        source_call_s=np.array([times[source.name].call_s for source in sources]),
        due_first=np.concatenate([[0], np.cumsum([len(its.ends_s) for its in due])]).astype(np.int64),
        due_ends=np.concatenate([np.asarray(its.ends_s, np.float64) for its in due]),
        due_counts=np.concatenate([np.asarray(its.counts, np.float64) for its in due]),
        all_ends=all_ends,
        all_counts=all_counts,
        entry=np.isin(np.arange(len(operators)), edge_to[: edge_first[len(sources)]]),
        reach=reach,
        ends=ends,
        node_cores=np.array([node.cores for node in nodes], np.float64),
        node_speed=np.array([node.speed for node in nodes], np.float64),
    )
    spikes = tuple(sorted(span for its in due for span in its.spikes))
    popularity = Popularity(keys, zipf)
    heats = tuple(heat for its in due for heat in popularity.at_times(its.keys))
    return Model(graph, sources, operators, fixed, tuple(names), popularity, tuple(nodes), spikes, heats)


def _routing(graph: Graph, operator: Operator) -> int:
    """Where several groupings lead to one operator, the first; their tuples mix in its lanes."""
    grouping = graph.edges_into(operator.name)[0].grouping
    if grouping.keyed:
        return MERGED if merges(operator) and grouping.redirects else WEIGHTED
    assert grouping.simulated_as is not None
    return ROUTING[grouping.simulated_as]


def merges(operator: Operator) -> bool:
    """True when parts of a key's state may be made in several lanes."""
    return operator.keyed is not None and operator.keyed.merge is not None


def _reach(
    sources: Sequence[Operator],
    operators: Sequence[Operator],
    arrivals: Mapping[str, Arrivals],
    edge_first: list[int],
    edge_to: list[int],
    edge_share: list[float],
) -> tuple[Floats, Floats]:
    """Per head, tuples that reach it for each one that enters, and tuples that finish there for each one it processes."""
    total = sum(arrivals[source.name].total for source in sources) or 1
    reach = np.zeros(len(sources) + len(operators))
    reach[: len(sources)] = [arrivals[source.name].total / total for source in sources]
    ends = np.zeros(len(reach))
    for head in range(len(reach)):
        out = 0.0
        for edge in range(edge_first[head], edge_first[head + 1]):
            out += edge_share[edge]
            if edge_to[edge] >= 0:
                reach[len(sources) + edge_to[edge]] += reach[head] * edge_share[edge]
            else:
                ends[head] += edge_share[edge]
        ends[head] += max(0.0, 1.0 - out)
    return np.maximum(reach, 1e-12), np.maximum(ends, 1e-12)


def _together(due: Sequence[Arrivals]) -> tuple[Floats, Floats]:
    """The arrivals of all sources as one."""
    if len(due) == 1:
        return np.asarray(due[0].ends_s, np.float64), np.asarray(due[0].counts, np.float64)
    ends = np.unique(np.concatenate([np.asarray(its.ends_s, np.float64) for its in due]))
    return ends, sum((np.interp(ends, its.ends_s, its.counts) for its in due), np.zeros(len(ends)))
