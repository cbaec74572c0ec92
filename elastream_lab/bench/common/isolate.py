"""Run parts of the benchmark in a process of their own: what they measured leaves, or why they could not."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elastream.errors import RunFailed
from elastream_lab.bench.common.schedule import Part


def run_part(part: Part) -> dict[str, Any]:
    """Run one part in a process of its own; returns when the process has ended."""
    [document] = run_parts([part])
    return document


def run_parts(parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    """One process, one after another in it: gives each part's result as soon as it is there."""
    timeout_s = 120 + 10 * sum(part.expected_s for part in parts)
    named = [text for part in parts for text in (part.name, json.dumps(part.arguments))]
    with TemporaryDirectory(prefix="elastream-bench-") as folder:
        err = Path(folder) / "err"
        with err.open("wb") as stderr, _started(named, stderr.fileno()) as process:
            too_late = threading.Timer(timeout_s, process.kill)
            too_late.daemon = True
            try:
                assert process.stdout is not None
                too_late.start()
                began = time.monotonic()
                for part in parts:
                    # Whatever else is printed there, a result is a line with a JSON object.
                    line = next((line for line in process.stdout if line.startswith("{")), None)
                    if line is None:
                        code = process.wait()
                        if code in (-signal.SIGINT, 128 + signal.SIGINT):
                            # Ctrl-C is for all processes of a terminal; the child was just quicker to see it.
                            raise KeyboardInterrupt
                        raise RunFailed(_failure(part, code, time.monotonic() - began, err))
                    yield json.loads(line)
                process.wait()
            finally:
                too_late.cancel()
                process.kill()


def _started(arguments: list[str], stderr: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "elastream_lab.bench.common.parts", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True)


def _failure(part: Part, code: int, seconds: float, err: Path) -> str:
    """Where, what, and the last words, without the lines of a Java stack."""
    said = err.read_text(encoding="utf-8", errors="replace").splitlines()
    last = [line for line in said if line.strip() and not line.lstrip().startswith("at ")][-12:]
    what = f"killed by signal {-code} after {seconds:.0f} s" if code < 0 else f"exit code {code} and no figures"
    call = f"python -m elastream_lab.bench.common.parts {part.name} '{json.dumps(part.arguments)}'"
    return f"bench, {part.label}: {what}; its last words:\n" + "\n".join(last) + f"\nthe part alone: {call}"


def busy_cores(seconds: float = 0.5) -> float:
    """How many cores the machine's other processes use just now; 0 where the system does not say."""
    before = _jiffies()
    time.sleep(seconds)
    after = _jiffies()
    total = after[1] - before[1]
    return (after[0] - before[0]) / total * (os.cpu_count() or 1) if total else 0.0


def _jiffies() -> tuple[int, int]:
    """(busy, all) since the machine started, of all cores together."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0, 0
    fields = [int(field) for field in stat.read_text(encoding="utf-8").splitlines()[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)
