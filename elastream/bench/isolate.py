"""Run one part of the benchmark in a process of its own: what it measured leaves, or why it could not."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elastream.errors import RunFailed


def run_part(name: str, arguments: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """The part's result. Output goes through files: a pipe would wait for every process that Spark leaves behind."""
    command = [sys.executable, "-m", "elastream.bench.parts", name, json.dumps(arguments)]
    with TemporaryDirectory(prefix="elastream-bench-") as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            try:
                code = subprocess.run(command, stdout=stdout, stderr=stderr, timeout=timeout_s, check=False).returncode
            except subprocess.TimeoutExpired:
                raise RunFailed(_failure(name, arguments, f"not done after {timeout_s:.0f} s", err)) from None
        lines = out.read_text(encoding="utf-8", errors="replace").splitlines()
        if code or not lines:
            raise RunFailed(_failure(name, arguments, f"ended with exit code {code} and no figures", err))
        result: dict[str, Any] = json.loads(lines[-1])
        return result


def _failure(name: str, arguments: dict[str, Any], what: str, err: Path) -> str:
    """Where, what, and the last words, without the lines of a Java stack."""
    said = err.read_text(encoding="utf-8", errors="replace").splitlines()
    last = [line for line in said if line.strip() and not line.lstrip().startswith("at ")][-12:]
    return f"bench part {name} {json.dumps(arguments)}: {what}; its last words:\n" + "\n".join(last)


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
