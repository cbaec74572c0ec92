"""CPU seconds of this process and all that it started: Spark's JVM, its Python workers."""

import os
from pathlib import Path

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def cpu_s() -> float:
    """Since each was started, those that have ended included once somebody has waited for them."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name in brackets may hold spaces.
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15])) * _TICK_S
    ours: set[int] = set()
    more = {os.getpid()}
    while more:
        ours |= more
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
    return sum(used[pid] for pid in ours)
