"""CPU and memory of this process and all that it started: Spark's JVM, its Python workers. Of one machine, from /proc."""

import os
from pathlib import Path
from typing import NamedTuple

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """Of a tree of processes."""

    cpu_s: float
    """Since each was started, those that have ended included once somebody has waited for them."""
    resident_bytes: int
    """Memory that they hold now; what they share counts in each."""


def tree_usage(*roots: int) -> Usage:
    """Of these processes, or of this one, and their descendants. Looks at every process once; a few milliseconds."""
    parents: dict[int, int] = {}
    used: dict[int, Usage] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name in brackets may hold spaces.
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = Usage(sum(map(int, fields[11:15])) * _TICK_S, int(fields[21]) * _PAGE_BYTES)
    ours: set[int] = set()
    more = set(roots or (os.getpid(),)) & set(parents)
    while more:
        ours |= more
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
    return Usage(sum(used[pid].cpu_s for pid in ours), sum(used[pid].resident_bytes for pid in ours))
