"""The command line, as a person types it: exit codes, one-line errors, reports, signals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elastream.cli.main import main
from elastream.engine.spark.stderr_filter import without_noise

APP = """
from elastream import Topology, sources, workload

def slow(row):
    import time
    time.sleep(0.001)
    return row

app = Topology("from a file")
numbers = app.source("in", sources.replay(workload.constant(200, SECONDS)))
numbers.map("slow", slow, replicas=(1, 4)).sink("end", lambda batch, delivery: None)
"""


def elastream(*words: str) -> list[str]:
    return [sys.executable, "-m", "elastream.cli.main", *words]


def app_file(folder: Path, seconds: float) -> str:
    (folder / "app.py").write_text(APP.replace("SECONDS", str(seconds)))
    return f"{folder / 'app.py'}:app"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "tweest"], "app 'tweest': expected a name, file.py:name or module:name; did you mean 'tweets'?"),
        (["run", "nowhere.py:app"], "app 'nowhere.py:app': no file nowhere.py"),
        (
            ["run", "tweets", "--trace", "mars"],
            "workload 'mars': no such trace, file or shape",
        ),
        (["run", "tweets", "--speed", "3"], "--speed, --scale and --spike change a trace; name one with --trace"),
        (["run", "tweets", "--replicas", "content=many"], "--replicas 'content=many': expected OPERATOR=NUMBER@SECOND"),
        (
            ["run", "tweets", "--replicas", "contnet=3"],
            "--replicas 'contnet=3': no operator 'contnet'; there are parse, content",
        ),
        (["run", "tweets", "--q-size", "0"], "q_size must be a whole number, 1 or more, got 0"),
        (["run", "tweets", "--td", "-1"], "td_s must be more than 0, got -1"),
        (["run", "tweets", "--policy", "pspss"], "no policy 'pspss'; did you mean 'psps'?"),
        (["run", "tweets", "--policy", "psps", "--slack", "2"], "guards: slack must be from 0 to less than 1, got 2"),
        (
            ["run", "tweets", "--policy", "none", "--dry-run"],
            "--dry-run needs a policy; name one with --policy",
        ),
        (["run", "tweets", "--replicas", "content=3", "--dry-run"], "--dry-run needs a policy; name one with --policy"),
        (["bench", "policies", "psps", "dsb"], "no policy 'dsb'"),
        (["bench", "policies", "psps", "--td", "0"], "td_s must be more than 0, got 0"),
        (["replay", "nowhere", "--policy", "psps"], "replay nowhere: no such directory"),
        (["audit", "no-such-base"], "no-such-base has no ledger; name the base directory of a run"),
    ],
)
def test_a_wrong_call_is_said_in_one_line_with_exit_code_2(
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_run_prints_one_json_document_and_audit_agrees(tmp_path: Path) -> None:
    base, report = str(tmp_path / "base"), tmp_path / "report"
    words = ["run", app_file(tmp_path, 4), "--base", base, "--report", str(report), "--replicas", "slow=3@1", "--json"]
    done = subprocess.run(elastream(*words), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["events"] == {
        "entered": 800,
        "finished": 800,
        "dropped": 0,
        "queued": 0,
        "duplicates": 0,
        "created": 0,
        "dead_letters": 0,
    }
    assert [(d["operator"], d["before"], d["after"], d["reason"]) for d in document["decisions"]] == [
        ("slow", 1, 3, "by hand, at 1 s")
    ]
    assert sorted(path.name for path in report.iterdir()) == [
        "latency.parquet",
        "report.html",
        "report.json",
        "report.png",
        "series.parquet",
    ]
    assert "Traceback" not in done.stderr
    audited = subprocess.run(elastream("audit", base, "--json"), capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(audited.stdout)["finished"] == 800
    segment = next((tmp_path / "base" / "ledger").glob("*.log"))
    segment.write_bytes(b"not what it was")
    broken = subprocess.run(elastream("audit", base), capture_output=True, text=True, timeout=60, check=False)
    assert broken.returncode == 1
    assert "problem" in broken.stdout and segment.name in broken.stdout.replace("\n", "")


def test_new_dead_letters_are_exit_code_1_unless_they_are_allowed(tmp_path: Path) -> None:
    base, report = str(tmp_path / "base"), str(tmp_path / "report")
    app = app_file(tmp_path, 2)
    path = tmp_path / "app.py"
    path.write_text(path.read_text().replace("    return row", "    return row if row['id'] % 3 else {}['x']"))
    line = path.read_text().splitlines().index("    return row if row['id'] % 3 else {}['x']") + 1

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        words = ["run", app, "--base", base, "--report", report, *more]
        return subprocess.run(elastream(*words), capture_output=True, text=True, timeout=120, check=False)

    done = run()
    assert done.returncode == 1, done.stderr
    assert (
        f"operator 'slow' failed on a tuple, which is a dead letter now: KeyError: 'x' at {path}:{line} ("
        in done.stderr
    )
    assert "waiting for hosts: " in done.stdout and "timing the operators" in done.stdout
    assert "read 400 = finished 266 + dropped 0 + dead letters 134 + queued 0; duplicates 0" in done.stdout
    assert f"134 dead letters: elastream letters {base} shows them" in done.stdout
    assert main(["score", report]) == 0
    again = run("--fresh", "--allow-dead-letters")
    assert again.returncode == 0, again.stderr
    assert f"base {base} begins anew: " in again.stderr and "dead letters 134 + queued 0" in again.stdout
    # Nothing is left to do, and no letter is new.
    third = run()
    assert third.returncode == 0, third.stderr
    assert "source in is exhausted, nothing is left to do" in third.stderr and "dead letters 134" in third.stdout


@pytest.mark.parametrize("to", ["the group", "all processes"])
def test_sigterm_stops_at_a_tick_boundary_with_the_report_written(tmp_path: Path, to: str) -> None:
    """To the group, as `timeout` sends it; to Spark's processes too, as systemd does."""
    base, report = tmp_path / "base", tmp_path / "report"
    words = ["run", app_file(tmp_path, 600), "--base", str(base), "--report", str(report)]
    with subprocess.Popen(
        elastream(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        until = time.monotonic() + 90
        while sum(log.stat().st_size for log in base.glob("ledger/*.log")) < 10_000:
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout
        os.killpg(process.pid, signal.SIGTERM)
        for child in children.split() if to == "all processes" else ():
            os.kill(int(child), signal.SIGTERM)
        said = process.communicate(timeout=60)[0]
    assert process.returncode == 0, said
    assert "Traceback" not in said
    events = json.loads((report / "report.json").read_text())["events"]
    assert events["entered"] == events["finished"] + events["dropped"] + events["queued"] > 0
    assert "from a file" in said and "tick" in said
    assert main(["audit", str(base)]) == 0


def test_only_noise_is_kept_from_the_terminal() -> None:
    dismissed = [
        "Traceback (most recent call last):\n",
        '  File "pyspark/daemon.py", line 95\n',
        "BrokenPipeError: [Errno 32]\n",
    ]
    real = ["Traceback (most recent call last):\n", '  File "app.py", line 5\n', "BrokenPipeError: [Errno 32]\n"]
    lines = ["WARNING: Using incubator modules: x\n", "hello\n", *dismissed, *real, "bye\n"]
    assert list(without_noise(lines)) == ["hello\n", *real, "bye\n"]
