"""`elastream fuzz`, with few inputs."""

import pytest

from elastream.cli.main import main
from elastream_lab.chaos import fuzz as fuzz_module
from elastream_lab.chaos.fuzz import Tally, Target


def test_damaged_input_of_every_kind_is_answered_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuzz", "--inputs", "3000", "--seed", "5"]) == 0
    assert "all answered" in capsys.readouterr().out


@pytest.mark.parametrize("reads", [lambda data: data.decode(), lambda data: 1 // 0])
def test_a_reader_that_lets_an_error_through_is_found(reads: object) -> None:
    tally = Tally()
    fuzz_module._try(Target(b"good", reads), b"\xff", tally)  # type: ignore[arg-type]
    assert (tally.accepted, tally.refused, len(tally.failures)) == (0, 0, 1)
