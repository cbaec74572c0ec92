"""What the README shows is what happens."""

import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from elastream.cli.main import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    (tmp_path / "pages.py").write_text(example.group(1).replace("seconds=30", "seconds=3"))
    done = subprocess.run(
        [sys.executable, "pages.py"], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    # 6000 clicks, of which every fiftieth is of the page that is left out.
    stored = sum(int(n) for n in re.findall(r"^\w+-store-\d+-\d+ (\d+)$", done.stderr + done.stdout, re.MULTILINE))
    assert stored == 6000 - 6000 // 50
    assert re.search(r"^\d Audit\(", done.stdout, re.MULTILINE) and "finished=6000, dropped=0, queued=0" in done.stdout


def test_the_commands_it_names_are_understood_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = re.findall(r"^elastream (.*)$", README, re.MULTILINE)
    called: list[str] = []
    for line in lines:
        words = shlex.split(line, comments=True)
        module = import_module(f"elastream.cli.{words[0]}")
        monkeypatch.setattr(module, "main", lambda args: called.append(args.command) or 0)
        assert main(words) == 0, line
    assert len(called) == len(lines) > 20
