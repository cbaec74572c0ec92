"""What the README shows is what happens."""

import re
import shlex
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from elastream.cli.commands import all_commands
from elastream.cli.main import main

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    (tmp_path / "pages.py").write_text(example.group(1).replace("seconds=30", "seconds=3"))
    done = subprocess.run(
        [sys.executable, "pages.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    # 4000 clicks, of which every fiftieth is of the page that is left out.
    deliveries = (tmp_path / "pages.txt").read_text()
    stored = sum(int(n) for n in re.findall(r"^\w+-store-\d+-\d+ (\d+)$", deliveries, re.MULTILINE))
    assert stored == 4000 - 4000 // 50
    # 3000 a second of a millisecond each take more than one replica.
    assert re.search(r"^parse: 1 -> [2-8]  ", done.stdout, re.MULTILINE)
    assert "read 4,000 = finished 4,000 + dropped 0 + dead letters 0 + queued 0; duplicates 0" in done.stdout


def test_the_commands_it_names_are_understood_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = re.findall(r"^elastream (.*)$", README, re.MULTILINE)
    called: list[str] = []

    def record(name: str, args: object) -> int:
        called.append(name)
        return 0

    for line in lines:
        words = shlex.split(line, comments=True)
        command = all_commands()[words[0]]
        monkeypatch.setattr(import_module(command.module), "main", partial(record, words[0]))
        assert main(words) == 0, line
    assert len(called) == len(lines) > 20
