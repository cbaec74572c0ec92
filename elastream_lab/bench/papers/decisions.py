"""How long a decision takes: from the end of an interval to decisions in the journal, for graphs of many sizes."""

import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from statistics import median

from elastream.connectors import sources
from elastream.control import ControlLoop, Decision, Guards, Journal, LevelDecision, Move, Observation
from elastream.engine.driver.commit.merge import TickResult
from elastream.engine.driver.ports import Tick
from elastream.engine.driver.status import RunStatus
from elastream.engine.measure.totals import Measurements, Surroundings
from elastream.engine.messages import LaneReceipt
from elastream.lanes import LaneId, OperatorCounts, Store
from elastream.policies import make_policy
from elastream.testing import ManualClock
from elastream.topology import Graph, Kind, Topology
from elastream.workload import constant
from elastream_lab.bench.common.tables import number, table

GOALS_MS = {10: 5.0, 1000: 200.0}
"""Operators -> the most that a decision may take."""

LANES = 8
TICKS, TICK_S = 20, 0.3
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
        self._replicas: dict[str, int] = {o.name: LANES // 2 for o in graph.served if o.kind is not Kind.OUTPUT}
        self._intervals = [_interval(graph, 40 if turn % 2 else 400) for turn in range(INTERVALS + 1)]
        self.rescales = 0

    def observe(self) -> Observation:
        status = RunStatus(replicas=self._replicas)
        return self._intervals.pop(0).interval(status, Surroundings(slots=10**6), TICKS * TICK_S)

    def apply(self, decisions: tuple[Decision, ...]) -> float:
        self.rescales += len(decisions)
        self._replicas |= {decision.operator: decision.after for decision in decisions}
        return 0.0

    def pause(self, seconds: float) -> float:
        """Nothing is served here that could pause."""
        return 0.0

    def discard(self) -> None:
        """Nothing waits."""

    def set_levels(self, decisions: tuple[LevelDecision, ...]) -> None:
        """There are no containers."""

    def place(self, moves: tuple[Move, ...]) -> None:
        raise AssertionError("no policy that is measured here moves replicas")


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
    line = Topology("a line")
    line.source("op0", sources.replay(constant(1, 1)))
    for n in range(1, operators + 1):
        line.batch(f"op{n}", _same, after=f"op{n - 1}", replicas=(1, LANES))
    line.output("out", after=f"op{operators}")
    return line.build()


def _same(batch: object) -> object:
    return batch


def _interval(graph: Graph, rows: int) -> Measurements:
    """Every lane of every operator served so many tuples of a millisecond in each tick."""
    measured = Measurements(graph)
    all_rows = rows * LANES
    result = TickResult(
        counts={
            o.name: OperatorCounts(processed=all_rows, received=all_rows, busy_s=all_rows * 1e-3)
            for o in graph.operators
        },
        receipts=[
            LaneReceipt(o.name, lane, processed=rows, busy_s=rows * 1e-3)
            for o in graph.operators
            for lane in range(LANES)
        ],
        sent={
            LaneId(edge.target, lane): Counter({o.name: rows})
            for o in graph.operators
            for edge in graph.edges_from(o.name)
            for lane in range(LANES)
        },
    )
    for n in range(TICKS):
        measured.add(Tick(n, n * TICK_S, (n + 1) * TICK_S, result, {}, {}))
    return measured
