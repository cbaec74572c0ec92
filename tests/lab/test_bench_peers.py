"""`elastream bench peers` without any peer: its folder, its counting, its answers, its processes."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from elastream.cli.main import main
from elastream.errors import RunFailed
from elastream.workload import constant
from elastream.workload.replay import Replay
from elastream_lab.bench.common.document import document_of
from elastream_lab.bench.engine.tweets_load import tweet_arrivals
from elastream_lab.bench.peers import compare, processes
from elastream_lab.bench.peers.compare import PeersBench, bench_peers
from elastream_lab.bench.peers.flink import parse_job
from elastream_lab.bench.peers.outputs import count_lines, distinct, origin_us, read_lines, write_schedule
from elastream_lab.bench.peers.own import Store, tweets
from elastream_lab.bench.peers.plot import draw_peers
from elastream_lab.bench.peers.processes import Java, started
from elastream_lab.bench.peers.replicas import Change, add_change, rescales, saved
from elastream_lab.bench.peers.runs import PeerRun
from elastream_lab.bench.peers.storm import parse_log
from elastream_lab.bench.peers.systems import ROWS, Row, not_fetched
from elastream_lab.bench.peers.watching import watch

BEGAN_US = 1_700_000_000_000_000


def test_lines_of_all_replicas_are_counted_and_a_torn_one_is_none(tmp_path: Path) -> None:
    (tmp_path / "out-1").write_text(f"0,0,{BEGAN_US + 10_000}\n2,200000,{BEGAN_US + 900_000}\n")
    (tmp_path / "out-2").write_text(f"1,100000,{BEGAN_US + 130_000}\n1,100000,{BEGAN_US + 950_000}\n3,300000,17")
    lines = read_lines(tmp_path)
    counted = count_lines(lines, 5, BEGAN_US)
    assert distinct(lines) == 3
    assert (counted.lost, counted.doubled) == (2, 1)
    # 10, 30 and 700 ms: of the tuple that came twice, the first time counts.
    assert counted.latency_mean_ms == pytest.approx(740 / 3)
    assert counted.latency_max_ms == pytest.approx(700)
    assert counted.latency_p95_ms == pytest.approx(np.percentile([10, 30, 700], 95))
    assert counted.silence_s == pytest.approx(0.77)


def test_a_run_without_output_is_an_error() -> None:
    with pytest.raises(RunFailed, match="expected 7 tuples at the last operator, got none"):
        count_lines(np.empty((0, 3), np.int64), 7, BEGAN_US)


def test_the_schedule_is_the_trace_in_microseconds(tmp_path: Path) -> None:
    write_schedule(constant(4, 2), tmp_path)
    assert [int(line) for line in (tmp_path / "schedule").read_text().split()] == [250_000 * k for k in range(1, 9)]
    assert origin_us(tmp_path) is None
    arrivals = tweet_arrivals(180)
    assert (arrivals.total, arrivals.seconds) == (43_716, 180)
    assert tweet_arrivals(20).seconds == pytest.approx(20, abs=0.5)


def test_elastreams_last_operator_writes_what_is_counted(tmp_path: Path) -> None:
    graph = tweets(str(tmp_path), "least_loaded", 5.0)
    assert [operator.replicas.most for operator in graph.served] == [8, 8, 8, 8]
    replay = graph.sources[0].source
    assert isinstance(replay, Replay)
    write_schedule(replay.arrivals, tmp_path)
    Store(str(tmp_path))(replay.rows(10, 13), None)
    lines = read_lines(tmp_path)
    schedule = [int(line) for line in (tmp_path / "schedule").read_text().split()]
    assert lines[:, 0].tolist() == [10, 11, 12]
    assert lines[:, 1].tolist() == schedule[10:13]
    # Each waits 5 ms.
    assert (np.diff(lines[:, 2]) >= 5_000).all()


def test_saved_counts_replica_seconds_against_whole_pools() -> None:
    changes: list[Change] = []
    add_change(changes, -2.0, {"a": 4, "b": 4})
    add_change(changes, 1.0, {"a": 4, "b": 4})
    add_change(changes, 2.0, None)
    add_change(changes, 5.0, {"a": 8, "b": 4})
    add_change(changes, 11.0, {"a": 1, "b": 1})
    assert len(changes) == 3
    # Five seconds with 8 of 16, five with 12; what came after the end does not count.
    assert saved(changes, 10.0, 8) == pytest.approx(1 - (5 * 8 + 5 * 12) / 160)
    assert rescales(changes, 10.0) == 1
    assert saved([], 10.0, 8) == 0.0


def test_flink_says_how_many_replicas_it_has_only_while_the_job_runs() -> None:
    names = ("Source: tweets", "parse", "content", "author", "store")
    vertices = [{"name": name, "parallelism": size} for size, name in enumerate(names, 1)]
    assert parse_job({"state": "RUNNING", "vertices": vertices}) == {"parse": 2, "content": 3, "author": 4, "store": 5}
    assert parse_job({"state": "RESTARTING", "vertices": vertices}) is None


def test_storm_tells_of_a_rebalance_in_its_log() -> None:
    assert set(parse_log("WARN something\n").values()) == {4}
    assert set(parse_log("WARN something\nrescaled,1700000000000000,8\n").values()) == {8}


def test_what_was_not_fetched_is_one_line_that_says_how(tmp_path: Path) -> None:
    lines = [line for row in ROWS if (line := not_fetched(row, tmp_path))]
    assert len(lines) == 4
    assert lines[0] == f"Flink, tuned to react: expected flink in {tmp_path}/flink, found none; fetch it: make peers"
    for name in ("flink", "autoscaler"):
        (tmp_path / name / "classes").mkdir(parents=True)
        (tmp_path / name / "version").write_text("2\n")
    assert [not_fetched(row, tmp_path) is None for row in ROWS] == [True] * 4 + [False] * 2


def _run(row: Row, number: int) -> PeerRun:
    counted = count_lines(np.array([[0, 0, BEGAN_US + 42_000], [1, 10, BEGAN_US + 1_042_010]]), 2, BEGAN_US)
    sizes = dict.fromkeys(("parse", "content", "author", "store"), 4)
    return PeerRun(row.name, number, counted, 0.5, 0, 206.0, ((0.0, sizes),), 0.1, 0.4)


def test_the_rest_goes_on_without_peers_and_a_failure_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_row(row: Row, number: int, peers: Path, seconds: float) -> PeerRun:
        if row.name == "Elastream, elastic":
            raise RunFailed("no more memory")
        return _run(row, number)

    monkeypatch.setattr(compare, "run_row", run_row)
    said: list[str] = []
    bench = bench_peers(5.0, 2, tmp_path, said.append)
    assert [(run.name, run.number) for run in bench.runs] == [("Elastream, PSPS", 1), ("Elastream, PSPS", 2)]
    assert not bench.met and len(bench.failures) == 2 and len(bench.missing) == 4
    assert sum(line.endswith("fetch it: make peers") for line in said) == 4
    text = bench.to_markdown()
    assert (
        "| Elastream, PSPS | 542 / 542 | 992 / 992 | 1,042 / 1,042 | 0.50 / 0.50 | 0 / 0 | 1.00 / 1.00 | 0 / 0 | 0 / 0 | 206 / 206 |"
        in text
    )
    assert "other processes used 0.1 to 0.1 cores, the load average was 0.4 to 0.4" in text
    assert "`job.autoscaler.metrics.window: 5s`" in text and "no more memory" in text
    assert json.loads(json.dumps(document_of(bench)))["runs"][0]["cpu_s"] == 206.0
    draw_peers(bench, tmp_path / "peers.png")
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_ends_the_command_with_one_line_and_leaves_the_runs_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[int] = []

    def run_row(row: Row, number: int, peers: Path, seconds: float) -> PeerRun:
        begun.append(number)
        if number == 2:
            raise KeyboardInterrupt
        return _run(row, number)

    monkeypatch.setattr(compare, "run_row", run_row)
    words = ["bench", "peers", "--runs", "3", "--peers", str(tmp_path), "--report", str(tmp_path)]
    assert main(words) == 130
    assert begun == [1, 1, 2], "no row is begun after it"
    assert capsys.readouterr().err == "elastream: stopped by Ctrl-C\n"
    assert [run["number"] for run in json.loads((tmp_path / "peers.json").read_text())["runs"]] == [1, 1]
    assert "stopped by Ctrl-C" in (tmp_path / "peers.md").read_text()


def test_all_rows_fit_into_one_picture(tmp_path: Path) -> None:
    runs = tuple(_run(row, number) for row in ROWS for number in (1, 2))
    draw_peers(PeersBench(5.0, 2, ROWS, {"flink": "2"}, runs, (), ()), tmp_path / "peers.png")
    assert (tmp_path / "peers.png").stat().st_size > 10_000


@pytest.fixture
def python_for_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of a line of Python in place of Java ones."""
    monkeypatch.setattr(Java, "command", lambda java, folder: [sys.executable, "-c", java.main])


def _is_there(pid: int) -> bool:
    """A process that has ended and that nobody has waited for is not there."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.usefixtures("python_for_java")
def test_a_program_ends_when_the_block_is_left_by_ctrl_c(tmp_path: Path) -> None:
    waits = Java("waits", [], "import sys; sys.stdin.read()", 1, [])
    pids = []
    with pytest.raises(KeyboardInterrupt), started(waits, tmp_path) as program:
        pids.append(program.pid)
        raise KeyboardInterrupt
    assert not _is_there(pids[0])


@pytest.mark.usefixtures("python_for_java")
def test_a_program_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "END_S", 0.2)
    with started(Java("stays", [], "import time; time.sleep(600)", 1, []), tmp_path) as program:
        pid = program.pid
    assert not _is_there(pid)


def test_a_program_ends_when_whoever_started_it_is_killed(tmp_path: Path) -> None:
    code = f"""
import sys, time
from pathlib import Path
from elastream_lab.bench.peers.processes import Java, started
Java.command = lambda java, folder: [sys.executable, "-c", java.main]
with started(Java("waits", [], "import sys; sys.stdin.read()", 1, []), Path({str(tmp_path)!r})) as program:
    print(program.pid, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        pid = int(driver.stdout.readline())
        driver.kill()
    deadline = time.monotonic() + 30
    while _is_there(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_there(pid)


@pytest.mark.usefixtures("python_for_java")
def test_a_system_that_ends_by_itself_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    with started(Java("flink", [], "raise SystemExit('no port')", 1, []), tmp_path) as program:
        program._process.wait(30)

        class Run:
            pids: tuple[int, ...] = (program.pid,)

            def look(self) -> dict[str, int] | None:
                program.check()
                return None

        with pytest.raises(RunFailed, match=r"flink ended with exit code 1; its last words:\nno port"):
            watch(Run(), tmp_path, 10, 1.0)
