"""Many seeds on all cores: which of them fail, and how fast they were."""

import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized

from elastream.testing.simulation.scenario import draw_scenario
from elastream.testing.simulation.shrink import Reduction, Shrinker
from elastream.testing.simulation.world import Outcome, simulate

TOGETHER = 8
"""Seeds that a process takes at a time."""

AROUND = 60
"""Events before a violation that are shown."""

SAY_S = 5.0


@dataclass
class Tally:
    """What became of some seeds."""

    seeds: int = 0
    works: int = 0
    entries: int = 0
    faults: int = 0
    drivers: int = 0
    virtual_s: float = 0.0
    seconds: float = 0.0
    cpu_s: float = 0.0
    violations: dict[int, str] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.works += outcome.works
        self.entries += outcome.entries
        self.faults += len(outcome.scenario.faults)
        self.drivers += outcome.drivers
        self.virtual_s += outcome.virtual_s
        if outcome.violation is not None:
            self.violations[outcome.scenario.seed] = outcome.violation

    def add_all(self, other: "Tally") -> None:
        for name in ("seeds", "works", "entries", "faults", "drivers", "virtual_s", "cpu_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.violations |= other.violations

    def __str__(self) -> str:
        rate = max(self.seconds, 1e-9)
        return (
            f"{self.seeds} seeds, {self.faults} faults, {self.works} works, {self.entries} entries, {self.drivers} drivers, "
            f"{self.virtual_s:.0f} s of virtual time; {self.seeds / rate:.1f} seeds/s, {self.works / rate:.0f} works/s; "
            f"{len(self.violations)} violations"
        )


def replay_command(seed: int, reduction: Reduction | None = None) -> str:
    """The command that shows the same history again."""
    more = f" --only-with '{reduction}'" if reduction is not None and str(reduction) else ""
    return f"elastream chaos --simulated --seed {seed}{more}"


def run_seeds(first: int, seeds: int, jobs: int, say: Callable[[str], None], *, seconds: float | None = None) -> Tally:
    """Simulate these seeds, or as many as the time allows, in so many processes."""
    tally, began_s, said_s = Tally(), time.monotonic(), time.monotonic()
    context = multiprocessing.get_context("spawn")
    parts = [(at, min(TOGETHER, first + seeds - at)) for at in range(first, first + seeds, TOGETHER)]
    with ProcessPoolExecutor(jobs, context, _begin, (context.Value("i", 0),)) as pool:
        for part in pool.map(_play, parts):
            tally.add_all(part)
            tally.seconds = time.monotonic() - began_s
            for seed, violation in part.violations.items():
                say(f"seed {seed}: {violation}\n  {replay_command(seed)}")
            if time.monotonic() - said_s >= SAY_S:
                said_s = time.monotonic()
                say(str(tally))
            if seconds is not None and tally.seconds >= seconds:
                pool.shutdown(wait=True, cancel_futures=True)
                break
    return tally


def show(outcome: Outcome, around: int = AROUND) -> list[str]:
    """A history as lines: its scenario, the faults, and what happened before the violation."""
    scenario = outcome.scenario
    lines = [
        f"seed {scenario.seed}, history {outcome.digest}: {outcome.works} works, {outcome.entries} entries, "
        f"{outcome.drivers} drivers, {outcome.virtual_s:.3f} s of virtual time",
        f"workload: {scenario.workload}",
        f"constants: {scenario.constants}",
        f"storage: {'a disk' if scenario.appends else 'an object store'}",
        *(f"fault {number} at {fault.at_s:.4f} s: {fault}" for number, fault in enumerate(scenario.faults)),
        *(["..."] if len(outcome.history) > around else []),
        *outcome.history[-around:],
    ]
    return [*lines, f"violation: {outcome.violation}" if outcome.violation else "no violation"]


def replay(seed: int, reduction: Reduction, *, shrink: bool, say: Callable[[str], None]) -> Outcome:
    """Simulate one seed again, and make it smaller when it fails."""
    if not shrink:
        return simulate(reduction.of(seed))
    shrinker = Shrinker(seed, say)
    outcome = shrinker.shrink()
    if outcome.violation is not None:
        say(f"replay it with: {replay_command(seed, shrinker.reduction)}")
    return outcome


def _begin(number: "Synchronized[int]") -> None:
    """Threads of one simulation are switched faster on one core."""
    with number.get_lock():
        mine = number.value
        number.value += 1
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[mine % len(cores)]})


def _play(part: tuple[int, int]) -> Tally:
    tally, cpu_s = Tally(), time.process_time()
    first, seeds = part
    for seed in range(first, first + seeds):
        tally.add(simulate(draw_scenario(seed)))
    tally.cpu_s = time.process_time() - cpu_s
    return tally
