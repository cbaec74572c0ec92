"""One contract, two plants: what a control loop may count on holds for the engine and for the simulator."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flows import same
from pyspark.sql import SparkSession

from elastream import Guards, Topology, sources, start
from elastream.control import JournalEntry, Observation, Policy, Proposal, Want
from elastream.simulator.engine_works import EngineTurns
from elastream.simulator.model import Node, make_model
from elastream.simulator.profile import OperatorTimes
from elastream.simulator.simulate import simulate
from elastream.topology import Graph
from elastream.workload import constant

SECONDS, RATE = 12.0, 300.0


def slow(row: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.005)
    return row


def flow() -> Graph:
    made = Topology("both")
    made.source("in", sources.replay(constant(RATE, SECONDS)))
    made.map("slow", slow, after="in", replicas=(1, 6), waits=True)
    made.filter("half", lambda row: row["id"] % 2 == 0, after="slow", replicas=(1, 3))
    made.batch("last", same, after="half", replicas=(1, 2)).output("out")
    return made.build()


class Scripted(Policy):
    """Sizes by the number of the interval, so that both plants are asked for the same."""

    name = "scripted"
    start = None

    def __init__(self) -> None:
        self.turn = 0

    def propose(self, seen: Observation) -> Proposal:
        self.turn += 1
        sizes = {"slow": (2, 6, 4)[self.turn % 3], "half": 1 + self.turn % 3, "last": 99}
        return Proposal(tuple(Want(o.operator, sizes[o.operator], "as scripted") for o in seen.scalable()))


def on_spark(spark: SparkSession, base: Path) -> list[JournalEntry]:
    entries: list[JournalEntry] = []
    with start(flow(), str(base), spark=spark, policy=Scripted(), td_s=1.5, guards=Guards(slack=0.0)) as handle:
        handle.on_decision(entries.append)
        assert handle.await_end(90)
    return entries


def simulated() -> list[JournalEntry]:
    entries: list[JournalEntry] = []

    graph = flow()
    times = {
        "in": OperatorTimes(1e-5, 1.0, 0.0),
        "slow": OperatorTimes(0.0055, 0.1, 0.1),
        "half": OperatorTimes(1e-5, 1.0, 0.1, {"last": 0.5}),
        "last": OperatorTimes(1e-5, 1.0, 0.1),
    }
    model = make_model(graph, times, {"in": constant(RATE, SECONDS)}, nodes=(Node(2),))
    turns = EngineTurns(0.0004, 0.0001, 0.0005, 1e-5, 0.0003, cores=2, slots=16, budget_s=0.05, max_budget_s=1.0)
    simulate(
        model,
        turns,
        Scripted(),
        td_s=1.5,
        seed=2,
        seconds=60.0,
        guards=Guards(slack=0.0),
        on_entry=entries.append,
    )
    return entries


@pytest.fixture(params=["spark", "simulator"])
def entries(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[JournalEntry]]:
    yield on_spark(request.getfixturevalue("spark"), tmp_path / "base") if request.param == "spark" else simulated()


def test_what_a_plant_observes_adds_up(entries: list[JournalEntry]) -> None:
    assert len(entries) >= 5
    observations = [entry.observation for entry in entries]
    assert [list(seen.operators)[:4] for seen in observations] == [["in", "slow", "half", "last"]] * len(entries)
    for before, seen in itertools.pairwise(observations):
        assert seen.seconds > 1.4 and seen.ticks >= 1
        assert seen.ended_s == pytest.approx(before.ended_s + seen.seconds, abs=0.01)
        assert seen.slots >= 1
        for operator in seen.scalable():
            assert (
                sum(operator.received_from.values())
                == operator.received
                == sum(lane.received for lane in operator.lanes)
            )
            assert operator.processed == sum(lane.processed for lane in operator.lanes)
            assert operator.queued == sum(lane.queued for lane in operator.lanes)
            assert operator.busy_seconds == pytest.approx(sum(lane.busy_seconds for lane in operator.lanes))
            assert sum(lane.active for lane in operator.lanes) <= operator.replicas <= operator.most
            # What came in and is not there any more has been served.
            queued_before = before.operators[operator.operator].queued
            assert operator.queued == queued_before + operator.received - operator.processed - operator.dropped
    slow_ones = [seen.operators["slow"].service_seconds for seen in observations if seen.operators["slow"].processed]
    assert all(0.004 < seconds < 0.05 for seconds in slow_ones)
    total = sum(seen.operators["half"].processed for seen in observations)
    assert sum(seen.operators["last"].received_from["half"] for seen in observations) == pytest.approx(
        total / 2, abs=100
    )


def test_a_plant_has_the_sizes_that_were_decided(entries: list[JournalEntry]) -> None:
    assert {decision.after for entry in entries for decision in entry.decisions if decision.operator == "slow"} == {
        2,
        4,
        6,
    }
    for entry, following in itertools.pairwise(entries):
        for decision in entry.decisions:
            assert following.observation.operators[decision.operator].replicas == decision.after
            assert decision.after <= following.observation.operators[decision.operator].most
