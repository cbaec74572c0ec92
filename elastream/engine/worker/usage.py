"""CPU and memory of a host and of its machine, and the executor to which it belongs. By psutil, on any system."""

import os

import psutil

from elastream.engine.messages import Usage

MOST_PARENTS = 4
"""A Python worker is a child of Spark's daemon, which is a child of the executor."""


class UsageMeter:
    """Looks at this process and its machine; the first look says nothing about the CPU."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        psutil.cpu_percent(None)

    def look(self, seats: int) -> Usage:
        """The CPU is that since the last look."""
        memory = psutil.virtual_memory()
        resident: int = self._process.memory_info().rss
        return Usage(resident, psutil.cpu_percent(None) / 100.0, memory.percent / 100.0, seats)


def executor_name() -> str:
    """Spark's name of the executor in which this process runs; its parent's number when Spark does not say."""
    named = os.environ.get("SPARK_EXECUTOR_ID")
    if named:
        return named
    try:
        process: psutil.Process | None = psutil.Process().parent()
        for _ in range(MOST_PARENTS):
            if process is None:
                break
            words = process.cmdline()
            if "--executor-id" in words[:-1]:
                return str(words[words.index("--executor-id") + 1])
            process = process.parent()
    except psutil.Error:
        # Somebody else's process, or one that has just ended.
        pass
    return str(os.getppid())
