"""What is wrong with a run is said in one line before anything is started."""

import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from flows import finish, numbers

from elastream import Topology, start
from elastream.applications.load import load_app
from elastream.cli.main import main
from elastream.engine.before_start import check_folder
from elastream.engine.driver import beginning
from elastream.engine.hosts.local_hosts import LocalHosts
from elastream.engine.hosts.refusal import refusal_in
from elastream.engine.spark import java, session
from elastream.errors import BaseInUse, RunFailed, SettingError
from elastream.testing import LocalEngine

UNGUARDED = """
from elastream import Topology, sources, workload
from elastream.testing import LocalEngine

def same(row):
    return row

app = Topology("t")
app.source("in", sources.replay(workload.constant(10, 1))).map("same", same).output("out")
LocalEngine().start(app)
"""


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever gets as far as starting Spark fails."""

    def started(*words: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("elastream.engine.on_spark.session", started)


# A run that is asked for while a file is imported


def test_a_run_at_import_is_refused_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "unguarded.py"
    path.write_text(UNGUARDED)
    assert main(["run", f"{path}:app"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert (
        f"run() was called at {path}:10 while the command line imported this file; put the call under `if __name__"
        in said
    )


def test_a_run_at_import_in_a_host_ends_the_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a program that imports the topology of another: its functions are known by their module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "unguarded_in_host.py").write_text(UNGUARDED.replace("LocalEngine().start(app)", ""))
    unguarded_in_host = import_module("unguarded_in_host")

    (tmp_path / "unguarded_in_host.py").write_text(UNGUARDED)
    os.utime(tmp_path / "unguarded_in_host.py", (0, 0))
    began = time.monotonic()
    with (
        pytest.raises(RunFailed, match=r"run\(\) was called at .*unguarded_in_host.py:10 while a host imported"),
        LocalEngine(processes=True).start(unguarded_in_host.app, str(tmp_path / "base")) as handle,
    ):
        handle.await_end(60)
    assert time.monotonic() - began < beginning.HOSTS_S / 2


def test_a_refusal_is_found_in_what_spark_says_of_a_task() -> None:
    said = "org.apache.spark.SparkException: Job aborted\n  File x\nelastream.errors.SettingError: run() was called\n\tat java"
    assert refusal_in(said) == "run() was called"
    assert refusal_in("ValueError: other") == ""


def test_a_host_that_never_came_leaves_the_end_of_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that hangs while it begins: its standard error tells why."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "hangs_in_host"
    source = "import sys, time\ndef same(row):\n    return row\n"
    (tmp_path / f"{name}.py").write_text(source)
    hangs_in_host = import_module("hangs_in_host")

    gate = "print('waits for a license', file=sys.stderr, flush=True)\ntime.sleep(600)\n"
    (tmp_path / f"{name}.py").write_text(source + gate)
    os.utime(tmp_path / f"{name}.py", (0, 0))
    monkeypatch.setattr(beginning, "HOSTS_S", 6.0)
    topology = numbers(10).map("a", hangs_in_host.same, after="in").output("out")
    with (
        pytest.raises(RunFailed, match=r"none came within 6 s.*(?s:.*)waits for a license"),
        LocalEngine(hosts=1, processes=True).start(topology, str(tmp_path / "base")) as handle,
    ):
        handle.await_end(60)


def test_processes_that_cannot_begin_end_the_run_with_their_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "gone_in_host.py"
    path.write_text("def same(row):\n    return row\n")
    gone_in_host = import_module("gone_in_host")

    path.unlink()
    topology = numbers(10).map("a", gone_in_host.same, after="in").output("out")
    with (
        pytest.raises(RunFailed, match=r"hosts: they cannot begin: (?s:.*)No module named 'gone_in_host'"),
        LocalEngine(hosts=1, processes=True).start(topology, str(tmp_path / "base")) as handle,
    ):
        handle.await_end(60)


# Functions that cannot be sent


def with_function(function: Any) -> Topology:
    return numbers(10).map("a", function, after="in").output("out").topology


class Enriches:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, row: Any) -> Any:
        return row


def unpicklable() -> list[tuple[Any, str]]:
    database, lock = sqlite3.connect(":memory:"), threading.Lock()

    def uses(row: Any) -> Any:
        database.execute("select 1")
        return row

    def passes(given: Any, row: Any) -> Any:
        return row

    return [
        (uses, "variable 'database' (sqlite3.Connection)"),
        (partial(passes, lock), "argument 0 (_thread.lock)"),
        (partial(passes, {"x": [lock]}), "item 0 (_thread.lock)"),
        (Enriches(), "attribute 'lock' (_thread.lock)"),
        (Enriches().__call__, "attribute 'lock' (_thread.lock)"),
    ]


@pytest.mark.parametrize("which", range(5))
def test_a_function_that_cannot_be_sent_names_the_object(which: int, tmp_path: Path, no_spark: None) -> None:
    function, blamed = unpicklable()[which]
    local = LocalEngine(processes=True).start
    for begin in (partial(start, base=str(tmp_path)), partial(local, base=str(tmp_path))):
        with pytest.raises(SettingError) as raised:
            begin(with_function(function))
        words = str(raised.value)
        assert words.startswith("map 'a': its function cannot be sent to hosts, because ") and blamed in words
        assert "\n" not in words and "functools.cache" in words
    # In threads nothing is sent.
    with LocalEngine().start(with_function(lambda row: row), str(tmp_path / "threads")) as handle:
        finish(handle)


def test_a_base_is_let_go_when_a_function_cannot_be_sent(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be sent"):
        LocalEngine(processes=True).start(with_function(Enriches()), str(tmp_path))
    with LocalEngine().start(with_function(lambda row: row), str(tmp_path)) as handle:
        finish(handle)


# Directories, policies, the base


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path, no_spark: None) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(SettingError, match="is a file, expected a directory"):
            start(with_function(lambda row: row), str(folder))
        with pytest.raises(SettingError, match=r"models .* is a file, expected a directory"):
            start(with_function(lambda row: row), str(tmp_path / "base"), models=str(folder))
    check_folder("base", str(tmp_path / "new" / "one"))
    assert not (tmp_path / "new").exists() and not (tmp_path / "base").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(SettingError, match="cannot be written"):
        check_folder("base", str(tmp_path / "base"))


def test_a_report_that_cannot_be_written_is_said_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], no_spark: None
) -> None:
    (tmp_path / "file").write_text("x")
    assert main(["run", "tweets", "--database", str(tmp_path / "d"), "--report", str(tmp_path / "file" / "r")]) == 2
    assert "--report" in (said := capsys.readouterr().err) and said.count("\n") == 1


def test_a_policy_and_a_base_are_checked_before_spark_starts(tmp_path: Path, no_spark: None) -> None:
    with pytest.raises(SettingError, match="no policy 'elastik'"):
        start(with_function(lambda row: row), str(tmp_path), policy="elastik")
    with LocalEngine().start(with_function(lambda row: row), str(tmp_path)) as handle:
        with pytest.raises(BaseInUse):
            start(with_function(lambda row: row), str(tmp_path))
        finish(handle)
    other = numbers(10).map("b", lambda row: row, after="in").output("elsewhere")
    with pytest.raises(SettingError, match="10 tuples wait for output 'out', which this topology does not have"):
        start(other, str(tmp_path))


# Java


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21-ea"', 21),
        ("no", None),
    ],
)
def test_the_version_of_java_is_read(said: str, version: int | None) -> None:
    assert java.version_of(said) == version


def fake_java(folder: Path, script: str) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    path = folder / "bin" / "java"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_java_that_is_missing_or_old_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingError, match="there is no java on the PATH, and JAVA_HOME is not set; install Java 17"):
        java.check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SettingError, match="by JAVA_HOME, cannot be run"):
        java.check_java()
    fake_java(tmp_path, "echo 'openjdk version \"11.0.2\"' >&2")
    with pytest.raises(SettingError, match=r"Spark needs 17 or newer, .* is 11"):
        java.check_java()
    fake_java(tmp_path, "echo 'cannot open shared object' >&2; exit 127")
    with pytest.raises(SettingError, match="-version failed: cannot open shared object"):
        java.check_java()
    fake_java(tmp_path, "echo 'openjdk version \"17.0.2\"' >&2")
    java.check_java()


def test_a_session_looks_for_java_first(tmp_path: Path) -> None:
    """In a process of its own: here Spark may run already."""
    program = "from elastream.engine.spark.session import session; session()"
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert f"SettingError: Java: {tmp_path}/bin/java, by JAVA_HOME, cannot be run" in done.stderr
    assert session.is_submitted() is False


def test_a_spark_that_does_not_start_is_said_in_one_line(tmp_path: Path) -> None:
    fake_java(tmp_path, """[ "$1" = -version ] && echo 'openjdk version "17.0.2"' >&2 && exit 0; exit 1""")
    (tmp_path / "app.py").write_text(UNGUARDED.replace("LocalEngine().start(app)", ""))
    done = subprocess.run(
        [sys.executable, "-m", "elastream.cli.main", "run", f"{tmp_path / 'app.py'}:app"],
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "elastream: Spark could not be started: [JAVA_GATEWAY_EXITED]" in done.stderr


def test_ctrl_c_before_the_stream_flows_leaves_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*words: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("elastream.cli.run.load_app", interrupted)
    assert main(["run", "tweets"]) == 130
    assert capsys.readouterr().err == "elastream: stopped by Ctrl-C\n"


# An application that cannot be loaded


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", "its import failed: SyntaxError: '(' was never closed at {path}:1"),
        ("import json\n\njson.loads('{{')", "its import failed: JSONDecodeError: .* at {path}:3"),
        (
            "import nothing_like_it",
            "its import failed: ModuleNotFoundError: No module named 'nothing_like_it' at {path}:1",
        ),
        ("raise SystemExit('no')", "its import failed: SystemExit: no at {path}:1"),
        ("def app():\n    return 1 / 0", "app\\(\\) failed: ZeroDivisionError: division by zero at {path}:2"),
    ],
)
def test_an_application_that_raises_is_said_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken_app.py"
    path.write_text(text.replace("{{", "{"))
    with pytest.raises(SettingError) as raised:
        load_app(f"{path}:app", None)
    assert re.search(message.format(path=path).replace("'(' was", "'\\(' was"), str(raised.value))
    assert "\n" not in str(raised.value)


def test_a_start_tells_how_far_it_is(tmp_path: Path) -> None:
    """Hosts that never come are waited for."""
    hosts = LocalHosts()
    assert hosts.last_words() == ""
    hosts.close()
    gate = threading.Event()

    def slow(row: Any) -> Any:
        gate.wait(30)
        return row

    with LocalEngine().start(with_function(slow), str(tmp_path), policy="elastic") as handle:
        until = time.monotonic() + 30
        while handle.stage != "timing the operators for 2 s" and time.monotonic() < until:
            time.sleep(0.001)
        assert handle.stage == "timing the operators for 2 s"
        gate.set()
        assert handle.await_begin(60) and handle.stage == ""
        finish(handle)
