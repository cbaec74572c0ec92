"""Spark's standard error without the lines that look like errors and are none. Everything else passes."""

import os
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator

KEPT_LINES = 20

_last: deque[str] = deque(maxlen=KEPT_LINES)
"""The newest lines that passed."""

HARMLESS = ("WARNING: Using incubator modules", "Setting default log level", "To adjust logging level use")


def filtered_stderr() -> int:
    """A file descriptor to give to the JVM; what is written there reaches our standard error, less the noise."""
    reading, writing = os.pipe()
    threading.Thread(target=_pump, args=(reading,), name="spark-stderr", daemon=True).start()
    return writing


def last_lines() -> str:
    """The end of what Spark and, where they are on this machine, its Python workers wrote to standard error."""
    return "".join(list(_last)).strip()


def without_noise(lines: Iterable[str]) -> Iterator[str]:
    """Drop harmless lines, and the tracebacks of workers that Spark dismissed after a minute of idling."""
    block: list[str] = []
    for line in lines:
        if line.startswith("Traceback (most recent call last):"):
            yield from block
            block = [line]
        elif block and line.startswith(" "):
            block.append(line)
        elif block:
            dismissed = line.startswith("BrokenPipeError") and any("pyspark/daemon.py" in frame for frame in block)
            if not dismissed:
                yield from (*block, line)
            block = []
        elif not line.startswith(HARMLESS):
            yield line
    yield from block


def _pump(reading: int) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in without_noise(lines):
            _last.append(line)
            sys.stderr.write(line)
            sys.stderr.flush()
