"""`elastream new NAME`: an application that runs, with a test that passes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from elastream.applications.load import load_app
from elastream.cli.main import main


def test_a_new_application_has_a_test_that_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "page-clicks", "--in", str(tmp_path)]) == 0
    folder = tmp_path / "page-clicks"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "app.py", "test_app.py"]
    assert "elastream run app.py:topology --base page-clicks-base" in capsys.readouterr().out
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_a_new_application_is_a_graph_with_its_name(tmp_path: Path) -> None:
    assert main(["new", "mine", "--in", str(tmp_path)]) == 0
    graph = load_app(f"{tmp_path}/mine/app.py:topology", None)
    assert graph.name == "mine" and [operator.name for operator in graph.operators] == [
        "clicks",
        "people",
        "count",
        "pages",
    ]
    readme = (tmp_path / "mine" / "README.md").read_text()
    assert sum(line.startswith("    ") for line in readme.splitlines()) == 3 and "{" not in readme


@pytest.mark.parametrize("name", ["", "../up", "1st", "a b", "x" * 65, "-x", "a/b"])
def test_a_name_that_is_no_folder_name_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "--", name]) == 2
    assert "new: a name has up to 64 letters, digits, - and _" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    assert main(["new", "mine", "--in", str(tmp_path)]) == 2
    assert f"new: {tmp_path / 'mine'} is there already" in capsys.readouterr().err
    assert list((tmp_path / "mine").iterdir()) == []
