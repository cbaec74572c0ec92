"""`start` returns a handle at once; `run` waits until the stream has ended, or for Ctrl-C."""

import inspect
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flows import each_once, ids_of, numbers

import elastream
from elastream import ErrorSettings, Settings
from elastream.errors import OperatorFailed
from elastream.testing import LocalEngine


def test_run_returns_the_handle_of_a_stream_that_has_ended(tmp_path: Path) -> None:
    handle = LocalEngine(virtual=True).run(numbers(100).output("out", after="in"), str(tmp_path))
    assert not handle.active
    assert ids_of(handle) == each_once(100) and handle.audit().problems == ()


def test_start_does_not_wait(tmp_path: Path) -> None:
    with LocalEngine().start(numbers(100_000, seconds=1000.0).output("out", after="in"), str(tmp_path)) as handle:
        assert handle.active and handle.totals("in").processed < 100_000
    assert not handle.active


def test_an_error_that_ends_the_run_is_raised_by_run(tmp_path: Path) -> None:
    def fail(row: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no luck")

    flow = numbers(100).map("a", fail, after="in").output("out")
    with pytest.raises(OperatorFailed, match="no luck"):
        LocalEngine(virtual=True).run(flow, str(tmp_path), settings=Settings(errors=ErrorSettings(on_error="stop")))
    # The base is free again.
    mended = numbers(100).map("a", lambda row: row, after="in").output("out")
    assert ids_of(LocalEngine(virtual=True).run(mended, str(tmp_path))) == each_once(100)


def test_ctrl_c_stops_a_run_which_returns_and_continues_with_the_same_base(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flow = numbers(3000, seconds=3.0).output("out", after="in").topology
    pressed: list[object] = []

    def press_once(tick: object) -> None:
        if not pressed:
            pressed.append(tick)
            os.kill(os.getpid(), signal.SIGINT)

    with caplog.at_level(logging.WARNING, "elastream.run"):
        handle = LocalEngine().run(flow, str(tmp_path), listeners=[press_once])
    assert not handle.active and handle.totals("in").processed < 3000
    assert f"run: interrupted; the stream stops. Start again with base {handle.store} to continue" in caplog.messages
    handle = LocalEngine().run(flow, str(tmp_path))
    assert ids_of(handle) == each_once(3000) and handle.audit().problems == ()


@pytest.mark.parametrize(
    ("start", "run"), [(elastream.start, elastream.run), (LocalEngine.start, LocalEngine.run)], ids=["Spark", "local"]
)
def test_both_take_the_same_parameters_and_help_explains_them(
    start: Callable[..., Any], run: Callable[..., Any]
) -> None:
    assert inspect.signature(start) == inspect.signature(run)
    said = inspect.getdoc(run) or ""
    assert said.startswith("Start an application and wait until its stream has ended")
    assert (inspect.getdoc(start) or "").splitlines()[0] in said
