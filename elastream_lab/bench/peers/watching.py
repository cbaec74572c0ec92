"""Watch a run of another system: its replicas, its processor time, and whether all tuples have come out."""

import time
from pathlib import Path
from typing import Protocol

from elastream.engine.measure.usage import tree_usage
from elastream.errors import RunFailed
from elastream_lab.bench.peers.outputs import distinct, origin_us, read_lines
from elastream_lab.bench.peers.replicas import Change, Replicas, add_change

START_S = 90.0
"""How long a system may take to begin."""

LATE_S = 30.0
"""A tuple that is not out so long after the last was due counts as lost."""

LOOK_S = 0.25


class Watched(Protocol):
    """A system that runs."""

    pids: tuple[int, ...]

    def look(self) -> Replicas | None:
        """Replicas by operator, None when it does not say just now; an error when the system has ended."""
        ...


def watch(run: Watched, folder: Path, total: int, seconds: float) -> tuple[list[Change], float]:
    """Until all tuples are out, or too late. The changes of its replicas, and CPU seconds while tuples were due."""
    began_s = _await_origin(run, folder)
    changes: list[Change] = []
    while time.time() < began_s:
        add_change(changes, 0.0, run.look())
        time.sleep(max(0.0, min(LOOK_S, began_s - time.time())))
    before_s = tree_usage(*run.pids).cpu_s
    while (passed_s := time.time() - began_s) < seconds:
        add_change(changes, passed_s, run.look())
        time.sleep(LOOK_S)
    used_s = tree_usage(*run.pids).cpu_s - before_s
    while time.time() < began_s + seconds + LATE_S and distinct(read_lines(folder)) < total:
        run.look()
        time.sleep(1.0)
    return changes, used_s


def _await_origin(run: Watched, folder: Path) -> float:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        run.look()
        began_us = origin_us(folder)
        if began_us is not None:
            return began_us / 1e6
        time.sleep(0.1)
    raise RunFailed(f"bench peers: expected the first tuple within {START_S:.0f} s, got none")
