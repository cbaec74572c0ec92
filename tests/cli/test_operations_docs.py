"""Commands of docs/operations.md are understood as they stand."""

import re
import shlex
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from elastream.cli.commands import all_commands
from elastream.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")


def test_the_commands_are_understood_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = re.findall(r"^    elastream (.*)$", PAGE, re.MULTILINE)
    called: list[str] = []

    def record(name: str, args: object) -> int:
        called.append(name)
        return 0

    for line in lines:
        words = shlex.split(line, comments=True)
        monkeypatch.setattr(import_module(all_commands()[words[0]].module), "main", partial(record, words[0]))
        assert main(words) == 0, line
    assert {"status", "watch", "scale", "discard", "drain", "stop", "check", "letters"} <= set(called)


def test_every_command_of_its_table_says_its_exit_codes_in_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("status", "watch", "scale", "discard", "stop", "drain", "check"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "exit code 0: " in " ".join(capsys.readouterr().out.split()), command
