"""Ctrl-C in commands that start other processes: they stop at once, with one line, and leave no process behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from flows import collect, numbers, wait_for

from elastream import ErrorSettings, Settings
from elastream.errors import RunFailed
from elastream.testing import LocalEngine
from elastream_lab.bench.common import isolate
from elastream_lab.bench.common.schedule import Part
from elastream_lab.bench.tournament.play import workers

COMMAND = [sys.executable, "-m", "elastream.cli.main"]


def ignores_ctrl_c() -> None:
    """As a shell script has what it starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def measuring(command: int) -> list[psutil.Process]:
    """The processes in which a benchmark measures."""
    return [
        child for child in psutil.Process(command).children() if "elastream_lab.bench.common.parts" in child.cmdline()
    ]


@pytest.mark.parametrize(
    ("words", "whole_group"),
    [(["peers", "--seconds", "30"], True), (["peers", "--seconds", "30"], False), (["state", "--quick"], True)],
    ids=["peers, to all processes of a terminal", "peers, to the command alone", "state, to all"],
)
def test_ctrl_c_stops_a_benchmark_and_the_process_that_it_measures_in(
    tmp_path: Path, words: list[str], whole_group: bool
) -> None:
    command = subprocess.Popen(
        [*COMMAND, "bench", *words, "--report", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=ignores_ctrl_c,
    )
    try:
        inside: list[psutil.Process] = []
        collect(inside, lambda: measuring(command.pid))
        (os.killpg if whole_group else os.kill)(command.pid, signal.SIGINT)
        out, err = command.communicate(timeout=60)
    finally:
        command.kill()
        command.communicate()
    assert command.returncode == 130
    assert err == "elastream: stopped by Ctrl-C\n"
    assert "Traceback" not in out and out.count(", run 1 of ") <= 1
    wait_for(lambda: not any(process.is_running() for process in inside))


def child(monkeypatch: pytest.MonkeyPatch, program: str) -> Part:
    """A part whose process runs this program."""

    def started(arguments: list[str], stderr: int) -> "subprocess.Popen[str]":
        return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=stderr, text=True)

    monkeypatch.setattr(isolate, "_started", started)
    return Part("x", "a part", {}, 1.0)


def test_a_part_that_was_stopped_by_ctrl_c_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    part = child(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    with pytest.raises(KeyboardInterrupt):
        isolate.run_part(part)


def test_a_part_that_ended_otherwise_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunFailed, match="a part: exit code 3 and no figures"):
        isolate.run_part(child(monkeypatch, "raise SystemExit(3)"))


def test_ctrl_c_ends_the_processes_of_a_tournament_and_begins_no_other_match() -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), workers(2) as pool:
        pool.map(time.sleep, [600.0] * 6)
        wait_for(lambda: len(multiprocessing.active_children()) == 2)
        raise KeyboardInterrupt
    assert not multiprocessing.active_children()
    assert time.monotonic() - began < 300


def test_ctrl_c_in_a_block_of_a_run_is_not_replaced_by_the_failure_of_the_run(tmp_path: Path) -> None:
    def raises(row: dict[str, int]) -> dict[str, int]:
        raise ValueError("no")

    flow = numbers(100).map("bad", raises, after="in").output("out")
    with (
        pytest.raises(KeyboardInterrupt),
        LocalEngine().start(flow, str(tmp_path), settings=Settings(errors=ErrorSettings(on_error="stop"))) as handle,
    ):
        wait_for(lambda: not handle.active)
        raise KeyboardInterrupt
