"""How long a decision takes: from the end of an interval to decisions in the journal, for graphs of many sizes."""

import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from statistics import median

from elastream.bench.tables import number, table
from elastream.control import ControlLoop, Decision, Guards, Journal, Observation
from elastream.engine import sources
from elastream.engine.estimates import Estimates
from elastream.engine.measure import Scene, Tick, Totals
from elastream.engine.settle import Settled
from elastream.engine.work import OperatorReceipt
from elastream.lanes import Book, Store
from elastream.policies import make_policy
from elastream.scoring.latency import Latencies
from elastream.testing import ManualClock
from elastream.topology import Graph, Kind, Topology
from elastream.workload import constant

GOALS_MS = {10: 5.0, 1000: 200.0}
"""Operators -> the most that a decision may take."""

LANES = 8
TICKS = 20
INTERVALS = 9


@dataclass(frozen=True)
class DecisionTime:
    """The median over some intervals, each of which changes every operator."""

    operators: int
    lanes: int
    ms: float

    @property
    def met(self) -> bool:
        return self.ms <= GOALS_MS.get(self.operators, float("inf"))


def bench_decisions(policy: str) -> list[DecisionTime]:
    """Observe, ask the policy, let the guards look, carry out, write down."""
    return [_measure(policy, operators) for operators in (10, 100, 1000)]


def decision_table(times: list[DecisionTime]) -> str:
    goals = {t.operators: number(GOALS_MS[t.operators]) if t.operators in GOALS_MS else "" for t in times}
    rows = [[str(t.operators), str(t.lanes), number(t.ms), goals[t.operators]] for t in times]
    return table(["operators", "lanes", "decision ms", "goal ms"], rows)


class _Plant:
    """Intervals that were measured before; only what is made of them at their end is part of a decision."""

    def __init__(self, graph: Graph) -> None:
        self._sizes: dict[str, int] = {
            operator.name: LANES // 2 for operator in graph.served if operator.kind is not Kind.OUTPUT
        }
        self._intervals = [_interval(graph, 40 if turn % 2 else 400) for turn in range(INTERVALS + 1)]
        self.rescales = 0

    def observe(self) -> Observation:
        active = {name: tuple(range(size)) for name, size in self._sizes.items()}
        scene = Scene(Book(), active, Estimates(), {}, budget_s=0.2, slots=10**6)
        return self._intervals.pop(0).observation(scene, overhead_s=0.1)

    def apply(self, decisions: tuple[Decision, ...], restart: bool) -> None:
        self.rescales += len(decisions)
        self._sizes |= {decision.operator: decision.after for decision in decisions}


def _measure(policy: str, operators: int) -> DecisionTime:
    with tempfile.TemporaryDirectory(prefix="elastream-bench-") as folder:
        plant, clock, journal = _Plant(_line(operators)), ManualClock(), Journal(Store(folder))
        loop = ControlLoop(
            plant, make_policy(policy), td_s=1.0, guards=Guards(), journal=journal, clock=clock, patience_s=60.0
        )
        loop.step()
        took = []
        for _ in range(INTERVALS):
            clock.advance(1.0)
            began = time.perf_counter()
            loop.step()
            took.append((time.perf_counter() - began) * 1e3)
    assert plant.rescales, "nothing was decided, so nothing was measured"
    return DecisionTime(operators, operators * LANES, median(took))


def _line(operators: int) -> Graph:
    """So many operators, one after another."""
    line = Topology("a line").source("op0", sources.replay(constant(1, 1)))
    for n in range(1, operators + 1):
        line.batch(f"op{n}", _same, after=f"op{n - 1}", replicas=(1, LANES))
    return line.output("out", after=f"op{operators}").build()


def _same(batch: object) -> object:
    return batch


def _interval(graph: Graph, rows: int) -> Totals:
    """Every lane of every operator served so many tuples of a millisecond in each tick."""
    totals = Totals(graph)
    counts: dict[str, dict[str, float]] = {
        o.name: {"processed": rows * LANES, "received": rows * LANES, "busy_s": rows * LANES * 1e-3}
        for o in graph.operators
    }
    receipts = tuple(
        OperatorReceipt(
            o.name,
            lane,
            processed=rows,
            busy_s=rows * 1e-3,
            delivered={edge.target: {lane: rows} for edge in graph.edges_from(o.name)},
        )
        for o in graph.operators
        for lane in range(LANES)
    )
    settled = Settled((), (), {}, counts, {}, receipts, Latencies(), Counter(), frozenset(), rows * 1e-3)
    for n in range(TICKS):
        totals.add(Tick(n, n * 0.3, (n + 1) * 0.3, settled, {}, {}))
    return totals
