"""The examples do what they say. Those that need a broker or a cluster are run where these are."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def said_by(example: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example)], cwd=folder, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_smallest_squares_every_number(tmp_path: Path) -> None:
    said = said_by("01_minimal.py", tmp_path)
    assert "[{'id': 1, 'square': 1}, {'id': 2, 'square': 4}, {'id': 3, 'square': 9}]" in said
    assert "entered=2000, finished=2000, dropped=0, queued=0, duplicates=0" in said


def test_a_policy_of_ones_own_grows_with_the_load_and_shrinks_after_it(tmp_path: Path) -> None:
    said = said_by("04_your_own_policy.py", tmp_path)
    sizes = [(int(a), int(b)) for a, b in re.findall(r"^look_up: (\d) -> (\d)  \d+ wait, ", said, re.MULTILINE)]
    # 500 a second at 5 ms each keep two and a half replicas busy all the time.
    assert max(after for _, after in sizes) >= 3
    assert any(after < before for before, after in sizes)
    assert "entered=1625, finished=1625, dropped=0, queued=0, duplicates=0" in said
