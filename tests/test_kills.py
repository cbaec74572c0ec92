"""SIGKILL to the driver: at each step of a tick, and twenty times at random. Every tuple arrives once."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from flows import each_once, ids_in
from mortal_driver import STEPS

from elastream.lanes import Store, audit

HERE = Path(__file__).parent


class Drivers:
    """Starts drivers one ahead: the next one's Spark starts up while the one before runs and dies."""

    def __init__(self, folder: Path, source: str, count: int, steps: Sequence[str]) -> None:
        self._words = [str(folder), source, str(count)]
        self._steps = iter(steps)
        self._ready = self._start()

    def next(self) -> subprocess.Popen[str]:
        """The next driver, which begins to run now."""
        assert self._ready is not None
        process, self._ready = self._ready, self._start()
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        return process

    def _start(self) -> subprocess.Popen[str] | None:
        step = next(self._steps, None)
        if step is None:
            return None
        script = [sys.executable, str(HERE / "mortal_driver.py"), *self._words, step]
        return subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE)


def prepared(folder: Path, source: str, count: int) -> None:
    (folder / "sink").mkdir()
    if source == "files":
        (folder / "in").mkdir()
        for number in range(count // 100):
            ids = range(number * 100, number * 100 + 100)
            (folder / "in" / f"{number:04}.json").write_text("".join(json.dumps({"id": i}) + "\n" for i in ids))


def check(folder: Path, count: int) -> None:
    """By the ids that arrived at the sink, and by the ledger."""
    assert ids_in(folder / "sink") == each_once(count)
    found = audit(Store(str(folder / "base")))
    assert (found.entered, found.finished, found.dropped, found.queued) == (count, count, 0, 0)
    assert (found.duplicates, found.problems) == (0, ())
    assert not list((folder / "base").rglob("*.unfinished"))


@pytest.mark.parametrize(("source", "count"), [("replay", 8_000), ("files", 12_000)])
def test_a_driver_killed_at_every_step_of_a_tick_loses_and_doubles_nothing(
    tmp_path: Path, source: str, count: int
) -> None:
    prepared(tmp_path, source, count)
    drivers = Drivers(tmp_path, source, count, [*STEPS, "none"])
    for step in STEPS:
        with drivers.next() as process:
            assert process.wait(120) == -signal.SIGKILL, f"was to die {step}"
    with drivers.next() as process:
        assert process.wait(480) == 0
    check(tmp_path, count)


def test_twenty_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path) -> None:
    prepared(tmp_path, "replay", 20_000)
    moments = random.Random(20)
    drivers = Drivers(tmp_path, "replay", 20_000, ["none"] * 21)
    for _ in range(20):
        with drivers.next() as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first.strip().isdigit(), f"ended before it could be killed: {first!r}"
            time.sleep(moments.uniform(0.0, 1.5))
            process.kill()
    with drivers.next() as process:
        assert process.wait(480) == 0
    check(tmp_path, 20_000)
