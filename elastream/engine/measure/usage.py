"""CPU and memory of this process and all that it started: Spark's JVM, its Python workers. Of one machine, from /proc."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """Of a tree of processes."""

    cpu_s: float
    """Of `tree_usage` since each was started, those that have ended included once somebody has waited for them."""
    resident_bytes: int
    """Memory that they hold now; what they share counts in each."""


class UsageMeter:
    """CPU that this process and all that it started have used since the meter was made, also those that have ended.

    A process that nobody waits for takes its CPU time along when it ends, so each one's last figure is kept. What it used
    after the last look is not known: look often.
    """

    def __init__(self) -> None:
        self._seen: dict[_Process, float] = {}
        self._look()
        self._before_s = sum(self._seen.values())

    def look(self) -> Usage:
        resident_bytes = self._look()
        return Usage(sum(self._seen.values()) - self._before_s, resident_bytes)

    def _look(self) -> int:
        """Note the CPU seconds of every process; return the memory of all."""
        found = _tree((os.getpid(),))
        self._seen.update((stat.process, stat.own_cpu_s) for stat in found)
        return sum(stat.resident_bytes for stat in found)


def tree_usage(*roots: int) -> Usage:
    """Of these processes, or of this one, and their descendants. Looks at every process once; a few milliseconds."""
    found = _tree(roots or (os.getpid(),))
    return Usage(sum(stat.own_cpu_s + stat.waited_cpu_s for stat in found), sum(stat.resident_bytes for stat in found))


class _Process(NamedTuple):
    """A number of a process may come again; its beginning does not."""

    pid: int
    began: int


class _Stat(NamedTuple):
    """One process, as the kernel tells it."""

    process: _Process
    parent: int
    own_cpu_s: float
    waited_cpu_s: float
    """Of its children that have ended, once it has waited for them."""
    resident_bytes: int


def _tree(roots: Sequence[int]) -> list[_Stat]:
    """These processes and their descendants, as far as they run."""
    stats: dict[int, _Stat] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name in brackets may hold spaces.
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            own, waited = (sum(map(int, fields[place : place + 2])) * _TICK_S for place in (11, 13))
            process = _Process(int(entry.name), int(fields[19]))
            stats[process.pid] = _Stat(process, int(fields[1]), own, waited, int(fields[21]) * _PAGE_BYTES)
    ours: set[int] = set()
    more = set(roots) & set(stats)
    while more:
        ours |= more
        more = {pid for pid, stat in stats.items() if stat.parent in ours} - ours
    return [stats[pid] for pid in ours]
