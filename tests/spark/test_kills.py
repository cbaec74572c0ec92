"""SIGKILL to the driver: at each step of a tick, and at random moments. Every tuple arrives once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from flows import check_tallies, each_once, ids_in
from mortal_driver import BATCH_STEPS, TICK_STEPS

from elastream.lanes import Store, audit

SUPPORT = Path(__file__).parents[1] / "support"

STEPS = (*BATCH_STEPS, *TICK_STEPS) if "ELASTREAM_KILLS" in os.environ else (*BATCH_STEPS, "in the commit")
"""The steps of a tick are killed without Spark too, in test_kills_local.py, where a driver starts in a second."""

KILLS = int(os.environ.get("ELASTREAM_KILLS", "1"))
"""How often a driver is killed at a random moment besides. A driver takes long to start: more are for those who have the time."""


class Drivers:
    """Starts drivers one ahead: the next one's Spark starts up while the one before runs and dies."""

    def __init__(self, folder: Path, count: int, steps: Sequence[str]) -> None:
        self._words = [str(folder), str(count)]
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

    def close(self) -> None:
        """End the driver that waits, if there is one left: a test that failed must not leave it to the next."""
        if self._ready is not None:
            with self._ready as process:
                process.kill()

    def _start(self) -> subprocess.Popen[str] | None:
        step = next(self._steps, None)
        if step is None:
            return None
        script = [sys.executable, str(SUPPORT / "mortal_driver.py"), *self._words, step]
        return subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=SUPPORT)


def prepared(folder: Path, count: int) -> None:
    """Half of the tuples come from files, with the higher ids; the drivers make the others."""
    (folder / "sink").mkdir()
    (folder / "in").mkdir()
    for first in range(count // 2, count, 100):
        lines = [json.dumps({"id": number}) + "\n" for number in range(first, first + 100)]
        (folder / "in" / f"{first:06}.json").write_text("".join(lines))


def check(folder: Path, count: int) -> None:
    """By the ids that arrived at the sink, by what Spark's state has counted, and by the ledger."""
    assert ids_in(folder / "sink") == each_once(count)
    check_tallies(str(folder / "base"), count)
    found = audit(Store(str(folder / "base")))
    # Every id goes to the sink and to the tally, where it becomes a part of a count.
    assert found.entered == found.finished >= 2 * count
    assert (found.dropped, found.queued, found.duplicates, found.problems) == (0, 0, 0, ())
    assert not list((folder / "base").rglob("*.unfinished"))


def test_a_driver_killed_at_every_step_of_a_tick_and_at_random_moments_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    count = 2_000 * (len(STEPS) - 1) + 2_000 * KILLS
    prepared(tmp_path, count)
    with closing(Drivers(tmp_path, count, [*STEPS, *["none"] * (KILLS + 1)])) as drivers:
        for step in STEPS:
            with drivers.next() as process:
                assert process.wait(120) == -signal.SIGKILL, f"was to die {step}"
        moments = random.Random(20)
        for _ in range(KILLS):
            with drivers.next() as process:
                assert process.stdout is not None
                first = process.stdout.readline()
                assert first.strip().isdigit(), f"ended before it could be killed: {first!r}"
                time.sleep(moments.uniform(0.0, 1.5))
                process.kill()
        with drivers.next() as process:
            assert process.wait(480) == 0
    check(tmp_path, count)
