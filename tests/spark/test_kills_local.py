"""SIGKILL to drivers at every step of a tick, and to drivers and hosts at random moments of one run, without Spark."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from flows import each_once, ids_in
from mortal_driver import TICK_STEPS
from mortal_local import DIGITS

from elastream.lanes import Store, audit
from elastream.lanes.readers import read_output
from elastream.state.table import state_table

SUPPORT = Path(__file__).parents[1] / "support"

KILLS = int(os.environ.get("ELASTREAM_KILLS", "0")) or 8
"""How many processes are killed, one after another; `ELASTREAM_KILLS=50` takes some minutes."""


def check_tallies(store: Store, count: int) -> None:
    """What a keyed operator remembered and told, while its replicas changed, is what a recount says."""
    wanted = Counter(number % DIGITS for number in range(count))
    assert {row["digit"]: row["n"] for row in state_table(store, "tally").to_pylist()} == wanted
    last = Counter[int]()
    for row in read_output(store, "tallies").to_pylist():
        assert row["id"] > last[row["digit"]], "a digit was counted twice, or out of order"
        last[row["digit"]] = row["id"]
    assert last == wanted


def groups_moved(folder: Path) -> int:
    """Key groups that have changed hands by now, in rescales that came to their end."""
    moves = folder / "moves"
    return sum(map(int, moves.read_text().split())) if moves.exists() else 0


def test_drivers_and_hosts_killed_at_every_step_and_at_random_moments_lose_and_double_nothing(tmp_path: Path) -> None:
    (tmp_path / "sink").mkdir()
    count, moments, killed = 2000 * (KILLS + 2 + len(TICK_STEPS)), random.Random(50), Counter[str]()
    moves: list[int] = []
    for step in TICK_STEPS:
        words = [sys.executable, str(SUPPORT / "mortal_local.py"), str(tmp_path), str(count), step]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, cwd=SUPPORT)
        assert done.returncode == -signal.SIGKILL, f"was to die {step}: {done.stderr}"
    while sum(killed.values()) < KILLS:
        words = [sys.executable, str(SUPPORT / "mortal_local.py"), str(tmp_path), str(count)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=SUPPORT) as driver:
            assert driver.stdout is not None
            for line in driver.stdout:
                hosts = line.split()
                assert hosts != ["ended"], f"ended after {dict(killed)}"
                if not hosts:
                    # Both are gone; the next line tells of the next ones.
                    continue
                time.sleep(moments.uniform(0.0, 0.4))
                if sum(killed.values()) >= KILLS or moments.random() < 0.4:
                    break
                with suppress(ProcessLookupError):
                    os.kill(int(moments.choice(hosts)), signal.SIGKILL)
                    killed["host"] += 1
            driver.kill()
            killed["driver"] += 1
            moves.append(groups_moved(tmp_path))
    words = [sys.executable, str(SUPPORT / "mortal_local.py"), str(tmp_path), str(count)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False, cwd=SUPPORT)
    assert done.stdout.splitlines()[-1] == "ended", done.stderr
    found = audit(Store(str(tmp_path / "base")))
    assert ids_in(tmp_path / "sink") == each_once(count)
    kept = read_output(Store(str(tmp_path / "base")), "out").column("id").to_pylist()
    assert Counter(kept) == each_once(count)
    check_tallies(Store(str(tmp_path / "base")), count)
    assert found.entered == found.finished >= 3 * count and (found.dropped, found.queued) == (0, 0)
    assert (found.duplicates, found.problems) == (0, ())
    assert killed["driver"] and killed["host"]
    # Keys changed hands between the kills, and not only before and after them.
    assert len(set(moves)) > len(moves) // 2 and groups_moved(tmp_path) > moves[0]
