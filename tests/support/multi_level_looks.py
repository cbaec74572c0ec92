"""What tests of multi-level elasticity share: a table, hand-made observations, and what a proposal says."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from elastream.control import HostObservation, Observation, Proposal, ReplicaObservation
from elastream.fleet import Level, LevelState
from elastream.testing import observation, operator, source

TABLE = """\
app: line
rows:
- {up_to: 4000, replicas: {parse: 1}, seats: 8, hosts: 1, executors: 1}
- {up_to: 12000, replicas: {parse: 2}, seats: 8, hosts: 1, executors: 1}
- {up_to: 14000, replicas: {parse: 3}, seats: 8, hosts: 2, executors: 2}
- {up_to: 16000, replicas: {parse: 4}, seats: 8, hosts: 2, executors: 2}
"""


def state(level: Level, planned: int, there: int | None = None, **more: Any) -> LevelState:
    start_s = {Level.SEAT: 0.05, Level.HOST: 2.0, Level.EXECUTOR: 60.0}[level]
    return LevelState(level, planned if there is None else there, planned, planned, 8, start_s, **more)


def seen(
    per_s: float,
    *,
    at_s: float = 0.0,
    served: float = 1.0,
    replicas: int = 1,
    executors: int = 1,
    there: int | None = None,
    cpu: float = 0.5,
    memory: float = 0.5,
    waits: bool = False,
    problem: str = "",
    most: int = 8,
) -> Observation:
    """Ten seconds of a source and a parser that serves this part of what it gets, on machines of two cores."""
    count = round(per_s * 10)
    lanes = tuple(
        ReplicaObservation(n, True, count // replicas, int(count * served) // replicas, 0, 5.0, host=0)
        for n in range(replicas)
    )
    base = observation(
        source("in", count),
        operator(
            "parse",
            {"in": count},
            processed=int(count * served),
            service_ms=1.0,
            replicas=replicas,
            lanes=lanes,
            most=most,
            waits=waits,
        ),
        seconds=10.0,
        ended_s=at_s,
    )
    machines = executors if there is None else there
    hosts = tuple(
        HostObservation(n, f"machine {n}", 2.0, 2.0 * cpu, machine_cpu=cpu, machine_memory=memory)
        for n in range(machines)
    )
    fleet = (
        state(Level.SEAT, 8),
        state(Level.HOST, executors, machines),
        replace(state(Level.EXECUTOR, executors, machines), problem=problem),
    )
    return replace(base, hosts=hosts, fleet=fleet)


def said(proposal: Proposal) -> dict[str, int]:
    return {want.operator: want.replicas for want in proposal.wants} | {
        want.level.value: want.count for want in proposal.levels
    }


def write_table(folder: Path) -> str:
    """TABLE in a file; gives its path, as a policy takes it."""
    path = folder / "table.yaml"
    path.write_text(TABLE, encoding="utf-8")
    return str(path)
