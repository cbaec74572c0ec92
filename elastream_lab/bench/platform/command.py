"""`elastream bench platform`: what threads, processes and machines do to a filter that computes and to one that waits."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median
from typing import Any

from elastream.simulator.profile import Machine, Profile
from elastream_lab.bench.common.isolate import busy_cores, run_part, run_parts
from elastream_lab.bench.common.schedule import Part
from elastream_lab.bench.common.tables import number, table
from elastream_lab.bench.platform.filter import FILTERS
from elastream_lab.bench.platform.model import fit_crowding, simulate_rows
from elastream_lab.bench.platform.runs import Borne, Containers, Found

LEVELS = ("threads", "processes", "machines")
HELPS = 1.1
"""More containers help when they serve this many times as much."""
NEAR = 0.2
"""The simulator is near enough when the middle configuration is within this share of what was measured."""


@dataclass(frozen=True)
class Step:
    """So many containers of a level, and how much they bear for each tuple that one of them bears."""

    number: int
    gain: float


@dataclass(frozen=True)
class PlatformBench:
    """Every configuration of both filters, measured and simulated."""

    quick: bool
    master: str
    machines: int
    cores: int
    """Of one machine."""
    rows: tuple[Borne, ...]
    simulated: tuple[float, ...]
    """Tuples per second of the same configurations, with the crowding that was measured."""
    thread_crowding: float
    process_crowding: float
    busy_cores: float

    def profile(self, known: Profile) -> Profile:
        """The same with what was measured here."""
        return replace(known, machine=with_crowding(known.machine, self.thread_crowding, self.process_crowding))

    def level(self, kind: str, level: str) -> list[tuple[int, Borne, float]]:
        """Configurations of a filter that differ in one kind of container only, by their number, with the simulated rate."""
        pairs = [pair for pair in zip(self.rows, self.simulated, strict=True) if pair[0].kind == kind]
        known = levels([row.containers for row, _ in pairs], self.cores)[level]
        found = [(getattr(its, _FIELDS[level]), its) for its in known]
        by = {row.containers: (row, simulated) for row, simulated in pairs}
        return [(count, *by[its]) for count, its in found]

    def steps(self, kind: str, level: str) -> list[Step]:
        rows = self.level(kind, level)
        return [Step(count, row.per_second / rows[0][1].per_second) for count, row, _ in rows]

    def apart(self) -> float:
        """By how much simulated rates differ from measured ones: the middle configuration."""
        pairs = zip(self.rows, self.simulated, strict=True)
        return median(abs(simulated / row.per_second - 1.0) for row, simulated in pairs)

    @property
    def met(self) -> bool:
        return self.apart() <= NEAR

    @property
    def verdicts(self) -> dict[str, Any]:
        gains = {kind: {level: self.steps(kind, level) for level in LEVELS} for kind in FILTERS}
        return {"gains": gains, "apart": self.apart(), "met": self.met}

    def to_markdown(self) -> str:
        quick = " **Quick run: does it work, not how fast is it.**" if self.quick else ""
        where = f"{self.machines} machines of {self.cores} cores" if self.machines > 1 else f"{self.cores} cores"
        parts = [
            "# Threads, processes, machines",
            f"`elastream bench platform` on {self.master}: {where}, of which other processes used {self.busy_cores:.1f}.{quick}",
        ]
        for kind in FILTERS:
            head = [
                "machines",
                "processes",
                "threads",
                "tuples/s",
                "simulated",
                "cores used",
                "memory MB",
                "ms a tuple",
            ]
            rows = [
                [
                    str(row.machines),
                    str(row.hosts),
                    str(row.threads),
                    f"{row.per_second:,.0f}",
                    f"{simulated:,.0f}",
                    number(row.cores) if row.cores is not None else "",
                    number(row.memory_mb) if row.memory_mb is not None else "",
                    number(row.service_s * 1e3),
                ]
                for row, simulated in zip(self.rows, self.simulated, strict=True)
                if row.kind == kind
            ]
            said = " ".join(advice(level, self.steps(kind, level)) for level in LEVELS)
            parts += [f"## A filter that {kind}", table(head, rows), said.strip()]
        parts.append(
            f"For the simulator: a thread computes {self.thread_crowding:.2%} more for each other at work in its process; "
            f"computing gets {self.process_crowding:.0%} slower with two processes per core. With that, simulated "
            f"rates are within {self.apart():.0%} of measured ones in the middle (goal: {NEAR:.0%}), "
            f"{'met' if self.met else '**not met**'}."
        )
        return "\n\n".join(parts)


_FIELDS = {"threads": "threads", "processes": "hosts", "machines": "machines"}


def configurations(kind: str, cores: int, machines: int, most_hosts: int) -> list[Containers]:
    """Threads in one process, then processes on one machine, then machines with all their processes."""
    threads = (1, 2, 4, 8, 16, 32, 64) if kind == "waits" else (1, 2, 4, 8)
    most = max(threads[-1], (16 if kind == "waits" else 4) * cores)
    found = [Containers(1, 1, count) for count in threads]
    found += [Containers(1, hosts, most) for hosts in doubled(most_hosts)]
    found += [Containers(count, count * cores, most * count) for count in doubled(machines)]
    return list(dict.fromkeys(found))


def doubled(most: int) -> list[int]:
    """1, 2, 4 and so on, and the last."""
    return sorted({*(2**n for n in range(most.bit_length())), most})


def levels(known: Sequence[Containers], cores: int) -> dict[str, list[Containers]]:
    """The configurations in which one kind of container was varied; none where there is only one."""
    one = [its for its in known if its.machines == 1]
    most = max((its.threads for its in one), default=0)
    whole = [its for its in known if its.hosts == its.machines * cores and its.threads == most * its.machines]
    found = {
        "threads": [its for its in one if its.hosts == 1],
        "processes": [its for its in one if its.threads == most],
        "machines": whole,
    }
    return {level: sorted(its) if len(its) > 1 else [] for level, its in found.items()}


def ends(known: Sequence[Containers], cores: int) -> list[Containers]:
    """The first and the last configuration of each level."""
    return list(dict.fromkeys(its for found in levels(known, cores).values() for its in (*found[:1], *found[-1:])))


def advice(level: str, steps: Sequence[Step]) -> str:
    """One sentence: up to how many containers of a level help, and what more of them do."""
    if not steps:
        return ""
    best, last = steps[0], steps[-1]
    for step in steps[1:]:
        if step.gain >= HELPS * best.gain:
            best = step
    if best is steps[0]:
        return f"More {level} than one do not help (x{last.gain:.2f} with {last.number})."
    more = f"; {last.number} bear {last.gain / best.gain - 1:+.0%}" if last.number > best.number else ""
    return f"{level.capitalize()} help up to {best.number} (x{best.gain:.2f}){more}."


def with_crowding(machine: Machine, threads: float, processes: float) -> Machine:
    return replace(machine, thread_crowding=threads, process_crowding=processes)


def bench_platform(
    quick: bool, say: Callable[[str], None], *, known: Profile, master: str | None = None, folder: str | None = None
) -> PlatformBench:
    """`known`: the costs of turns and works. `folder`: where all machines of a cluster see what waits."""
    warm_up_s, seconds = (0.5, 1.0) if quick else (3.0, 6.0)
    cores, machines = os.cpu_count() or 1, 1
    most_hosts = 2 * cores
    if master is not None:
        say(f"looking for the machines of {master}")
        document = run_part(Part("find_machines", "the machines", {"master": master}, 20))
        there = Found(**document)
        cores, machines, most_hosts = there.cores, there.machines, there.cores
    busy = round(busy_cores(), 2)
    asked = {kind: configurations(kind, cores, machines, most_hosts) for kind in FILTERS}
    if quick:
        asked = {kind: ends(its, cores) for kind, its in asked.items()}
    cells = [(kind, its) for kind, found in asked.items() for its in found]
    parts = [
        Part(
            "platform",
            f"a filter that {kind}: {_words(its)}",
            {
                "kind": kind,
                **its._asdict(),
                "master": master or f"local[{most_hosts + 1}]",
                "extra": _asked(its.machines, cores) if master else {},
                "folder": folder,
                "warm_up_s": warm_up_s,
                "seconds": seconds,
            },
            warm_up_s + seconds + 2,
        )
        for kind, its in sorted(cells, key=lambda cell: cell[1].machines)
    ]
    rows: list[Borne] = []
    # One session per number of machines.
    for _, group in groupby(parts, key=lambda part: part.arguments["machines"]):
        together = list(group)
        say(f"part {len(rows) + 1} of {len(parts)}: {together[0].label}")
        for document in run_parts(together):
            rows.append(Borne(**document))
            if len(rows) < len(parts) and parts[len(rows)] in together:
                say(f"part {len(rows) + 1} of {len(parts)}: {parts[len(rows)].label}")
    say("simulating the same")
    machine = replace(known.machine, cores=cores)
    threads, processes = fit_crowding(machine, rows)
    simulated = simulate_rows(with_crowding(machine, threads, processes), rows)
    where = master or "this machine"
    return PlatformBench(quick, where, machines, cores, tuple(rows), tuple(simulated), threads, processes, busy)


def _words(its: Containers) -> str:
    counts = ((its.machines, "machine"), (its.hosts, "process"), (its.threads, "thread"))
    return ", ".join(
        f"{count} {word}{'' if count == 1 else 'es' if word[-1] == 's' else 's'}" for count, word in counts
    )


def _asked(machines: int, cores: int) -> dict[str, str]:
    """What a session says so that it gets so many executors, on any master."""
    return {
        "spark.executor.cores": str(cores),
        "spark.executor.instances": str(machines),
        "spark.cores.max": str(machines * cores),
    }
