"""The list of commands, the options of an application, and extras that are missing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from elastream.cli.commands import Group, all_commands
from elastream.cli.main import main
from elastream.extensions import installed

APP = """
from typing import Annotated
from elastream import Topology, sources, workload

def topology(arrivals=None, *, top: Annotated[int, "words to keep"] = 10, name: str | None = None):
    app = Topology(name or "mine")
    app.source("in", sources.replay(arrivals or workload.constant(10, 1)))
    app.map("same", lambda row: row, after="in", replicas=(1, 4))
    app.output("out", after="same")
    return app
"""


@pytest.fixture
def app(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(APP)
    return f"{tmp_path}/mine.py:topology"


def test_without_a_command_all_commands_are_listed_in_groups_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert [line for line in lines if line.endswith(":") and line[0] != " "] == [f"{group}:" for group in Group]
    assert set(all_commands()) <= {line.split()[0] for line in lines if line.startswith("  ")}


def test_a_package_whose_commands_cannot_be_loaded_takes_no_other_command_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    about = tmp_path / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[elastream.commands]\nbroken = no_such_package:COMMANDS\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.cache_clear()
    try:
        assert {"run", "bench"} <= set(all_commands())
    finally:
        installed.cache_clear()
    assert "commands of broken are left out" in caplog.text and "no_such_package" in caplog.text


def test_a_command_that_does_not_exist_is_answered_with_the_one_that_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["simulat"]) == 2
    assert capsys.readouterr().err == "elastream: no command 'simulat'; did you mean 'simulate'?\n"


def test_the_options_of_an_application_are_the_parameters_of_its_function(
    app: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["run", app, "--help"])
    text = capsys.readouterr().out
    assert "--top INT" in text and "words to keep; default: 10" in text and "--pool" in text
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "--top" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--top", "many"], "argument --top: invalid int value: 'many'"),
        (["--tops", "3"], "unrecognized arguments: --tops 3"),
        (["--pool", "x"], "argument --pool: expected a number"),
    ],
)
def test_an_option_that_cannot_be_is_one_line(
    app: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", app, *words]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("missing", "words", "message"),
    [
        ("numba", ["simulate", "tweets"], "simulate needs the package numba; install it with: pip install 'elastream[simulate]'"),
        ("scipy", ["simulate", "tweets", "--policy", "autrascale"], "needs the package scipy; install it with: pip install 'elastream[learn]'"),
        ("matplotlib", ["trace", "show", "covid_tweets", "--png", "x.png"], "trace needs the package matplotlib; install it with: pip install 'elastream[plots]'"),
    ],
)  # fmt: skip
def test_a_command_whose_extra_is_missing_names_it(
    missing: str, words: list[str], message: str, tmp_path: Path
) -> None:
    # A finder in front of all others, as if the package were not installed.
    program = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {missing!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from elastream.cli.main import main\n"
        f"sys.exit(main({words!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert message in done.stderr


def test_every_option_of_a_run_that_takes_a_value_states_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    """Options that may be repeated have none."""
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    text = " ".join(capsys.readouterr().out.partition("options:")[2].split())
    options = re.split(r" (?=--[a-z])", text)
    silent = [option.split()[0] for option in options if len(option.split()) > 1 and "default:" not in option]
    flags = {"--fresh", "--dry-run", "--json", "--help"}
    assert set(silent) - flags <= {"--replicas", "--spike"}
