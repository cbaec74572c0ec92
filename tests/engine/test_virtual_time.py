"""The engine in virtual time: an hour of a stream in seconds, and the same again."""

from collections import Counter
from pathlib import Path
from typing import Any

from flows import each_once, files_by_delivery, finish, ids_in

from elastream import Settings, Topology, groupings, sources
from elastream.engine.clock import VirtualClock
from elastream.engine.driver.ports import Tick
from elastream.engine.hosts.inline_hosts import InlineHosts
from elastream.engine.hosts.link import HostCame, HostWent
from elastream.engine.messages import TimeWork, Works
from elastream.engine.worker.program import Program
from elastream.testing import LocalEngine
from elastream.workload import constant, steps

HOUR_S = 3600.0


def hourly(folder: Path) -> Topology:
    folder.mkdir()
    flow = Topology("hour")
    flow.source("in", sources.replay(steps([1, 4, 1], HOUR_S)))
    flow.map("a", lambda row: row, after="in", replicas=(1, 4))
    flow.flat_map("b", lambda row: [row] * (row["id"] % 2), after="a", grouping=groupings.fields("id"), replicas=2)
    flow.sink("end", files_by_delivery(folder), after="b")
    return flow


def played(folder: Path) -> tuple[list[tuple[float, float]], Counter[int]]:
    ticks: list[Tick] = []
    with LocalEngine(virtual=True).start(hourly(folder / "sink"), str(folder / "base")) as handle:
        handle.subscribe(ticks.append)
        handle.scale("a", 3)
        finish(handle)
        assert handle.audit().problems == ()
    times = [(tick.ended_s - ticks[0].ended_s, tick.result.latencies.mean_s) for tick in ticks]
    return times, ids_in(folder / "sink")


def test_an_hour_passes_in_seconds_and_every_tuple_arrives(tmp_path: Path) -> None:
    times, ids = played(tmp_path)
    assert sum(ids.values()) == 3600 and set(ids) == set(range(1, 7200, 2))
    assert HOUR_S - 10 < times[-1][0] < HOUR_S + 10
    # Works take no time there, so a tuple waits for the pace of its source and lanes only.
    assert max(latency for _, latency in times) < 0.2


def test_a_policy_sizes_in_virtual_time(tmp_path: Path) -> None:
    flow = Topology("sized")
    flow.source("in", sources.replay(constant(50, 60)))
    flow.map("a", lambda row: row, after="in", replicas=(1, 8)).output("out")
    decided: list[Any] = []
    with LocalEngine(virtual=True).start(flow, str(tmp_path), policy="psps", td_s=5.0, benchmark_s=0) as handle:
        handle.on_decision(decided.append)
        finish(handle)
        assert Counter(handle.output("out").column("id").to_pylist()) == each_once(3000)
    assert len(decided) >= 10


def test_a_host_that_ends_before_it_did_its_works_only_goes(tmp_path: Path) -> None:
    """Retirement may end a host in the very turn in which it was given works."""
    graph = Topology("t").source("in", sources.replay(constant(10, 1))).output("out").topology.build()
    hosts = InlineHosts(VirtualClock())
    hosts.start(Program(graph, Settings(), str(tmp_path), "id", {}, appends=True))
    hosts.keep(0)
    assert [type(event) for event in hosts.poll(0.0)] == [HostCame]
    hosts.send(0, Works([TimeWork(1, {"in": 10}, 0.1)]))
    hosts.end(0)
    assert [type(event) for event in hosts.poll(0.0)] == [HostWent]
