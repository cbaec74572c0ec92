"""`elastream kafka`: what is refused before a broker is started."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from elastream.cli.main import main


@pytest.fixture(autouse=True)
def same_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--partitions", "0"], "kafka: --partitions must be 1..1000, got 0"),
        (["--per-second", "-1"], "kafka: --per-second must be 0..100000, got -1"),
        (["--per-second", "nan"], "kafka: --per-second must be 0..100000, got nan"),
        (["--port", "70000"], "kafka: --port must be 1..65535, got 70000"),
    ],
)
def test_a_wrong_option_is_said_in_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kafka", *words]) == 2
    assert capsys.readouterr().err == f"elastream: {message}\n"


def test_a_port_that_somebody_has_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        assert main(["kafka", "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"kafka: port {port} cannot be used" in said and "choose another with --port" in said


def test_a_broker_that_was_not_fetched_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELASTREAM_CACHE", str(tmp_path))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert main(["kafka", "--port", str(port)]) == 2
    assert f"no Kafka broker in {tmp_path / 'jars' / 'broker'}; run make kafka" in capsys.readouterr().err
