"""Fault after fault, until the time or the number is reached; after each the stream must flow, and all accounts must be right."""

import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from elastream.chaos.faults import NotNow, possible
from elastream.chaos.scene import Scene
from elastream.errors import RunFailed
from elastream.lanes import Store, audit
from elastream.testing.spark_cluster import spark_cluster

PER_SECOND = 300.0
BETWEEN = 150
"""Tuples that must arrive between two faults."""

DISK = "256m"

END_S = 20.0
"""How long processes may take to end after their driver."""


@dataclass
class Kind:
    """Faults of one kind."""

    times: int = 0
    longest_s: float = 0.0
    """The longest time until the stream flowed again."""
    problems: int = 0


@dataclass
class Outcome:
    """What became of a run."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    faults: int = 0
    expected: int = 0
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    """Deliveries that came again with other rows."""
    poisoned: int = 0
    buried: int = 0
    """Tuples in the dead letters."""
    starts: int = 0
    processes_left: int = 0
    files_left: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        wrong = self.lost, self.doubled, self.changed, self.processes_left, self.files_left, len(self.problems)
        return not any(wrong) and self.buried == self.poisoned


def chaos(
    seconds: float,
    faults: int | None,
    *,
    cluster: bool,
    edges: bool,
    seed: int,
    only: list[str],
    say: Callable[[str], None],
) -> Outcome:
    """Strike until the time is over, or so many times."""
    chance, outcome, began = random.Random(seed), Outcome(), time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="elastream-chaos-"))
    with _disk(folder / "disk") as small, spark_cluster() if cluster else nullcontext(None) as running:
        # More tuples than the time needs: faults take time too, and what is late is caught up with.
        scene = Scene(folder, running, edges=edges, per_second=PER_SECOND, seconds=seconds)
        try:
            scene.flow(BETWEEN)
            strikes = {
                name: strike for name, strike in possible(scene, small_disk=small).items() if not only or name in only
            }
            if not strikes:
                raise RunFailed(
                    f"chaos: none of {', '.join(only)}; there are {', '.join(possible(scene, small_disk=small))}"
                )
            while outcome.faults < (faults or 10**9) and time.monotonic() - began < seconds:
                _strike(scene, strikes, chance, outcome, say)
            say("no more faults; everything must arrive")
            _judge(scene, outcome)
        finally:
            scene.close()
    outcome.seconds = time.monotonic() - began
    if outcome.holds:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        outcome.problems.append(f"left for you to look at: {folder}")
    return outcome


def _strike(
    scene: Scene,
    strikes: dict[str, Callable[..., str]],
    chance: random.Random,
    outcome: Outcome,
    say: Callable[[str], None],
) -> None:
    scene.hear()
    name = chance.choice(list(strikes))
    try:
        detail = strikes[name](scene, chance)
    except NotNow:
        time.sleep(0.2)
        return
    outcome.faults += 1
    kind = outcome.kinds.setdefault(name, Kind())
    kind.times += 1
    took_s = scene.flow(BETWEEN)
    kind.longest_s = max(kind.longest_s, took_s)
    found = audit(Store(str(scene.base)))
    kind.problems += len(found.problems) + found.duplicates + scene.arrived.doubled
    outcome.problems += [f"after {name}: {problem}" for problem in found.problems]
    say(f"{outcome.faults:4d}  {name} {detail}; flows again after {took_s:.1f} s; {len(scene.arrived.times)} arrived")


def _judge(scene: Scene, outcome: Outcome) -> None:
    found = scene.finish()
    scene.arrived.look()
    expected = {*range(scene.total), *scene.feeder.numbers} - scene.feeder.poisoned
    outcome.expected = len(expected)
    outcome.lost = len(expected - scene.arrived.times.keys())
    outcome.doubled = scene.arrived.doubled
    outcome.changed = scene.arrived.changed()
    outcome.poisoned, outcome.buried = len(scene.feeder.poisoned), found.dropped
    outcome.starts = scene.starts
    outcome.problems += found.problems
    until = time.monotonic() + END_S
    while (left := scene.processes()) and time.monotonic() < until:
        time.sleep(0.2)
    outcome.processes_left = len(left)
    outcome.files_left = len(list(scene.base.rglob("*.unfinished")))


@contextmanager
def _disk(place: Path) -> Iterator[bool]:
    """A small disk of its own for the base, where one can be had; says whether it is one."""
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(place)], capture_output=True, check=False
    )
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)
