"""Multi-level elasticity on the simulator: threads before machines, last in first out, ahead of the usual load; nothing is lost."""

from pathlib import Path
from typing import Any

import pytest
from simulations import line

from elastream.control import Guards
from elastream.fleet import Level
from elastream.policies.multi_level import MultiLevel
from elastream.policies.multi_level.table import Configuration, Row, Table
from elastream.policies.multi_level.usual import Usual
from elastream.simulator.cluster import Cluster
from elastream.simulator.containers import Startup
from elastream.simulator.fidelity import Failure
from elastream.simulator.model import Node
from elastream.simulator.profile import OperatorTimes
from elastream.simulator.simulate import Simulated, simulate
from elastream.simulator.storm_steps import StormSteps
from elastream.workload import Arrivals, steps

NODES = (Node(2, memory_gb=4.0),) * 3
COMPUTES = OperatorTimes(0.02, cpu=1.0, spread=0.0)
"""50 tuples per second and replica."""
DAY = (40.0, 80.0, 160.0, 80.0, 40.0)
"""One replica, two on a machine, four on two machines, and back."""


@pytest.fixture
def table(tmp_path: Path) -> str:
    def row(up_to: float, replicas: int, machines: int) -> Row:
        levels = {Level.SEAT: 8, Level.HOST: machines, Level.EXECUTOR: machines}
        return Row(up_to, Configuration({"op0": replicas}, levels))

    path = tmp_path / "table.yaml"
    path.write_text(Table("line", (row(50, 1, 1), row(100, 2, 1), row(200, 4, 2))).to_yaml(), encoding="utf-8")
    return str(path)


def followed(policy: Any, arrivals: Arrivals, *, failures: tuple[Failure, ...] = (), **startup: Any) -> Simulated:
    its = Startup(0.01, 1.0, 20.0, threads_per_process=8, process_gb=2.0, machines=1, **startup)
    return simulate(
        line(arrivals, length=1, times=COMPUTES, nodes=NODES),
        StormSteps(0.01, 0.0),
        policy,
        td_s=5.0,
        seed=1,
        seconds=arrivals.seconds,
        guards=Guards(slack=0.0),
        cluster=Cluster(NODES, its, failures),
    )


def machines(run: Simulated) -> list[int]:
    """How many were there, one after another."""
    there = [sample.levels["executor"].there for sample in run.record.fleet]
    return [count for place, count in enumerate(there) if not place or there[place - 1] != count]


def congested(run: Simulated) -> int:
    return sum(sample.worst < 1.0 for sample in run.record.healths)


def words(run: Simulated) -> str:
    return "\n".join(f"{kind} {said}" for _, kind, said in run.record.remarks)


def test_the_controller_of_a_table_grows_and_shrinks_machines_and_loses_nothing(table: str) -> None:
    run = followed(MultiLevel(table=table), steps(DAY, 500.0))
    assert machines(run) == [1, 2, 1]
    assert [(its.before, its.after) for its in run.record.rescales] == [(1, 2), (2, 4), (4, 2), (2, 1)]
    assert run.events.dropped == 0 and run.events.entered == run.events.finished + run.events.queued
    assert congested(run) <= 8, "while the machine came"


def test_without_a_table_it_finds_the_same_and_takes_a_thread_first() -> None:
    run = followed(MultiLevel(looks=1), steps(DAY, 500.0))
    assert machines(run) == [1, 2, 1]
    first = run.record.rescales[0]
    assert (first.before, first.after) == (1, 2) and "the cheapest that helps is one seat more" in first.reason
    assert "the cheapest that helps is one executor more, there in 20 s" in words(run)


def test_machines_alone_cost_more(table: str) -> None:
    threads = followed(MultiLevel(looks=1), steps(DAY, 500.0))
    alone = followed(MultiLevel(looks=1, overload=0.0), steps(DAY, 500.0))
    assert max(machines(alone)) == 3
    seconds = [sum(sample.levels["executor"].there for sample in run.record.fleet) for run in (threads, alone)]
    assert seconds[0] < 0.8 * seconds[1]


def test_ahead_of_the_usual_load_fewer_intervals_are_congested(table: str, tmp_path: Path) -> None:
    path = tmp_path / "usual.yaml"
    # By slots of 25 s, so that the middles are near the steps.
    path.write_text(Usual(500.0, 25.0, 0.0, tuple(rate for rate in DAY for _ in range(4))).to_yaml(), encoding="utf-8")
    reactive = followed(MultiLevel(table=table), steps(DAY, 500.0))
    proactive = followed(MultiLevel(table=table, usual=str(path)), steps(DAY, 500.0))
    assert congested(reactive) >= 3
    assert congested(proactive) <= congested(reactive) / 2
    assert "proactive: " in words(proactive) and machines(proactive) == [1, 2, 1]


def test_a_cluster_that_refuses_is_reported_and_the_stream_goes_on(table: str) -> None:
    run = followed(MultiLevel(table=table), steps((40.0, 160.0), 600.0), grants=1)
    assert machines(run) == [1]
    assert "2 executors asked for 3 times" in words(run) and "look whether the cluster has room" in words(run)
    assert max(sample.replicas for sample in run.record.series.operators["op0"]) == 2


def test_a_machine_that_dies_while_it_is_added_is_replaced(table: str) -> None:
    run = followed(MultiLevel(table=table), steps(DAY, 500.0), failures=(Failure("machine", 1, 210.0, 5000.0),))
    assert machines(run) == [1, 2, 1]
    assert max(sample.replicas for sample in run.record.series.operators["op0"]) == 4
