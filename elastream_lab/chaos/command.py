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
from typing import Any

from elastream.applications.load import load_app
from elastream.errors import RunFailed, SettingError
from elastream.lanes import Ledger, Store, audit
from elastream.testing.spark_cluster import spark_cluster
from elastream.topology import Graph
from elastream.workload import parse_workload
from elastream_lab.chaos.deliveries import Deliveries
from elastream_lab.chaos.faults import NotNow, Strike, possible
from elastream_lab.chaos.numbers import FIRST_OF_FILES, FIRST_OF_TOPIC, Feeder, Numbers, files_in
from elastream_lab.chaos.scene import Scene
from elastream_lab.chaos.spec import RunSpec
from elastream_lab.chaos.topic import Topic, numbers_topic
from elastream_lab.chaos.witness import Verdict, Witness

PER_SECOND = 300.0

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
    verdict: Verdict | None = None
    buried: int = 0
    """Tuples in the dead letters, or dropped."""
    over: bool = False
    """True when the sources of the run were exhausted before the time was."""
    starts: int = 0
    processes_left: int = 0
    files_left: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        verdict = self.verdict
        if verdict is None or self.problems or self.processes_left or self.files_left:
            return False
        wrong = verdict.lost, verdict.doubled, verdict.changed
        return not any(wrong) and verdict.poisoned in (None, self.buried)


@dataclass(frozen=True)
class Attack:
    """What is attacked, and how."""

    seconds: float
    faults: int | None = None
    """Until so many, if the time suffices; None: until the time is over."""
    app: str | None = None
    """An application of the user's instead of the built-in flow."""
    options: dict[str, Any] = field(default_factory=dict)
    trace: str | None = None
    cluster: bool = False
    edges: bool = True
    broker: bool = False
    seed: int = 1
    only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.app is not None and self.broker:
            raise SettingError("chaos: --broker is for the built-in flow; an application brings its own")
        if self.app is None and (self.options or self.trace):
            raise SettingError("chaos: a trace and options are an application's; name one")


def chaos(attack: Attack, say: Callable[[str], None]) -> Outcome:
    """Strike until the time is over, or so many times."""
    outcome, began = Outcome(), time.monotonic()
    graph = _graph(attack)
    folder = Path(tempfile.mkdtemp(prefix="elastream-chaos-"))
    try:
        _attack(attack, graph, folder, outcome, say)
    except RunFailed as failure:
        if not outcome.faults:
            raise
        # A run that hangs has a table, too.
        outcome.problems.append(str(failure))
    except SettingError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    outcome.seconds = time.monotonic() - began
    if outcome.holds:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        outcome.problems.append(f"left for you to look at: {folder}")
    return outcome


def _attack(attack: Attack, graph: Graph | None, folder: Path, outcome: Outcome, say: Callable[[str], None]) -> None:
    chance = random.Random(attack.seed)
    with (
        _disk(folder / "disk") as small,
        spark_cluster() if attack.cluster else nullcontext(None) as cluster,
        numbers_topic() if attack.broker else nullcontext(None) as topic,
    ):
        spec = RunSpec(
            str(folder),
            cluster.master if cluster else "local",
            PER_SECOND,
            attack.seconds,
            attack.edges,
            topic.servers if topic else None,
            attack.app,
            attack.options,
            attack.trace,
        )
        scene = Scene(spec, _witness(spec, graph, topic), cluster, topic)
        try:
            strikes = _chosen(possible(scene, small_disk=small), attack.only)
            scene.flow(scene.witness.between)
            until = time.monotonic() + attack.seconds
            while outcome.faults < (attack.faults or 10**9) and time.monotonic() < until:
                scene.hear()
                if scene.over:
                    break
                _strike(scene, strikes, chance, outcome, say)
            say("no more faults; everything must arrive")
            _judge(scene, outcome)
        finally:
            scene.close()
            if small and not outcome.holds and scene.base.exists():
                # The small disk goes, and with it what one would look at.
                shutil.copytree(scene.base, folder / "base", dirs_exist_ok=True)


def _graph(attack: Attack) -> Graph | None:
    """Of the application: one that cannot be loaded is refused before anything is started."""
    if attack.app is None:
        return None
    return load_app(attack.app, parse_workload(attack.trace) if attack.trace else None, attack.options)


def _witness(spec: RunSpec, graph: Graph | None, topic: Topic | None) -> Witness:
    folder = Path(spec.folder)
    if graph is not None:
        return Deliveries(graph, folder / "sink")
    feeders = [Feeder(FIRST_OF_FILES, files_in(folder / "in"))] if spec.edges else []
    if topic is not None:
        feeders.append(Feeder(FIRST_OF_TOPIC, topic.put))
    # More tuples than the time needs: faults take time too, and what is late is caught up with.
    return Numbers(folder, int(spec.per_second * spec.seconds), feeders)


def _chosen(strikes: dict[str, Strike], only: tuple[str, ...]) -> dict[str, Strike]:
    unknown = [name for name in only if name not in strikes]
    if unknown:
        raise SettingError(f"chaos: no fault {unknown[0]!r} here; there are {', '.join(strikes)}")
    return {name: strikes[name] for name in only} if only else strikes


def _strike(
    scene: Scene,
    strikes: dict[str, Strike],
    chance: random.Random,
    outcome: Outcome,
    say: Callable[[str], None],
) -> None:
    name = chance.choice(list(strikes))
    try:
        detail = strikes[name](scene, chance)
    except NotNow:
        time.sleep(0.2)
        return
    outcome.faults += 1
    kind = outcome.kinds.setdefault(name, Kind())
    kind.times += 1
    took_s = scene.flow(scene.witness.between)
    kind.longest_s = max(kind.longest_s, took_s)
    found = audit(Store(str(scene.base)))
    kind.problems += len(found.problems) + found.duplicates + scene.witness.wrong()
    outcome.problems += [f"after {name}: {problem}" for problem in found.problems]
    say(
        f"{outcome.faults:4d}  {name} {detail}; flows again after {took_s:.1f} s; {scene.witness.look(scene.last)} arrived"
    )


def _judge(scene: Scene, outcome: Outcome) -> None:
    found = scene.finish()
    state = Ledger(Store(str(scene.base))).load()
    outcome.over = scene.over
    outcome.verdict = scene.witness.verdict(state, drained=scene.over)
    outcome.buried = found.dropped
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
