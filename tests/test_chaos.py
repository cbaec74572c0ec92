"""`elastream chaos`, for a short while."""

import json

import pytest

from elastream.cli.main import main


def test_a_run_under_attack_loses_doubles_and_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ["driver killed", "host killed", "socket cut", "storage fails", "foreign file"]
    words = ["chaos", "--plain", "--json", "--minutes", "0.5", "--faults", "5", "--seed", "2"]
    code = main(words + [word for kind in kinds for word in ("--only", kind)])
    found = json.loads(capsys.readouterr().out)
    assert code == 0, found
    assert found["faults"] > 0 and found["expected"] == 9000
    assert (found["lost"], found["doubled"], found["changed"], found["processes_left"]) == (0, 0, 0, 0)
