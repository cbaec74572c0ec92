"""`elastream score`: of a run's series, and of any other system's CSV."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from elastream.cli.main import main
from elastream.report import Events, Record, Sample, write_report
from elastream.report.latency import Latencies
from elastream.report.scores.score import score


def spike_csv(path: Path, seconds: int = 100) -> Path:
    """Five times the input from second 30 to 35; the queue goes from 100 to 2,000 and back to 125 in ten seconds."""
    tenths = np.arange(1, seconds * 10 + 1)
    events = np.where((tenths > 300) & (tenths <= 350), 500, 100)
    queued = np.interp(tenths, [300, 350, 450], [100, 2000, 125])
    lines = [f"{t / 10},{n},{q:.3f}" for t, n, q in zip(tenths, events, queued, strict=True)]
    path.write_text("\n".join(["t_s,input,queued", *lines, ""]))
    return path


def test_any_systems_csv_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = spike_csv(tmp_path / "other.csv")
    assert main(["score", str(file), "--json", "--png", str(tmp_path / "score.png")]) == 0
    found = json.loads(capsys.readouterr().out)["ai_sps"]
    assert found["k_s"] == pytest.approx(0.8, rel=0.01)
    assert found["tau_s"] == pytest.approx(10.0, rel=0.02)
    assert found["index"] == pytest.approx(3.751 * 0.8 - 1.37 + 1.485 + 1.631, abs=0.06)
    assert [round(spike["onset_s"]) for spike in found["spikes"]] == [30]
    assert len(np.unique(imread(tmp_path / "score.png").reshape(-1, 4), axis=0)) > 50
    assert main(["score", str(file)]) == 0
    said = capsys.readouterr().out
    assert "AI-SPS 4.7" in said and "does not adapt well" in said and "6.867" in said
    assert "busy replica only: none, nobody knows" in " ".join(said.split())


def test_a_csv_may_tell_what_waits_for_a_busy_replica(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (spike_csv(tmp_path / "other.csv")).read_text().splitlines()
    # Eighty of those queued are only on their way.
    waiting = [f"{line},{max(0.0, float(line.split(',')[2]) - 80)}" for line in lines[1:]]
    (tmp_path / "both.csv").write_text("\n".join([lines[0] + ",waiting", *waiting]))
    assert main(["score", str(tmp_path / "both.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ai_sps"]["k_s"] == pytest.approx(100 / 125, rel=0.01)
    assert found["ai_sps_busy"]["k_s"] == pytest.approx(20 / 45, rel=0.03)
    assert main(["score", str(tmp_path / "both.csv")]) == 0
    apart = found["ai_sps_busy"]["index"] - found["ai_sps"]["index"]
    assert f"{found['ai_sps_busy']['index']:.3f}, {apart:+.3f}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: expected t_s,input,queued, got ''"),
        ("t,input,queued\n1,2,3\n", "line 1: expected t_s,input,queued, got 't,input,queued'"),
        ("t_s,input,queued\n", "expected two lines of samples or more"),
        ("t_s,input,queued\n1,2,3\n2,2\n", "line 3: expected three numbers, got '2,2'"),
        ("t_s,input,queued\n1,2,3\n2,x,3\n", "line 3: expected three numbers, got '2,x,3'"),
        ("t_s,input,queued\n1,2,3\n1,2,3\n", "line 3: time goes from 1.0 to 1.0"),
        ("t_s,input,queued\n1,2,3\n2,-1,3\n", "line 3: expected 0 or more in input, got -1.0"),
        ("t_s,input,queued\n1,2,3\n2,1,nan\n", "line 3: expected 0 or more in queued, got nan"),
        ("t_s,input,queued\n1,2,3\ninf,1,2\n", "line 3: expected a time in seconds, got inf"),
    ],
)
def test_what_is_wrong_in_a_csv_is_said_with_its_line(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    assert main(["score", str(file)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "series.parquet").write_text("no parquet")
    assert main(["score", str(tmp_path)]) == 2
    assert "expected the series.parquet of a run" in capsys.readouterr().err
    assert main(["score", str(tmp_path / "nothing")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_a_run_is_scored_from_its_directory_as_its_report_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Record("a run", ("in",), pools={"work": 6}, interval_s=2.0, policy="psps")
    for n in range(1, 401):
        t, rate = n / 4, 500 if 120 < n <= 140 else 100
        queued = int(np.interp(n, [120, 140, 160], [20, 800, 25]))
        record.series.add("in", Sample(t, 0.25, rate // 4, rate // 4, 0, 0, 1, 0.0, entered=rate // 4))
        record.series.add(
            "work", Sample(t, 0.25, rate // 4, rate // 4, 0, queued, 2, rate / 4 * 0.008, finished=rate // 4)
        )
        its = Latencies()
        its.add(np.full(rate // 4, 0.1 + queued / 1000))
        record.latency_line.add(t, its)
        record.latencies.merge(its)
    report = write_report(record, Events(12000, 12000, 0, 0, 0), tmp_path)
    assert main(["score", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in found} == {name: report[name] for name in found}
    # 500 a second of 8 ms.
    assert found["r_over"] == 4 and found["saved_resources"] == 0.5
    assert found["ai_sps"]["k_s"] == pytest.approx(0.8, rel=0.02)
    assert found["correlations"]["queue_latency"]["pearson"] == pytest.approx(1.0, abs=0.02)
    assert found["correlations"]["queue_latency"]["spearman"] > 0.5
    assert found["health"] == {"work": pytest.approx(1.0)}
    assert main(["score", str(tmp_path / "series.parquet"), "--r-over", "8"]) == 0
    said = capsys.readouterr().out
    assert "0.75" in said and "queue-latency pearson" in said


def test_a_source_that_was_held_up_and_reads_more_afterwards_is_no_spike() -> None:
    record = Record("paused", ("in",), pools={"work": 6}, interval_s=2.0)
    for n in range(1, 601):
        # Nothing is read from second 30 to 34; then all of it at once.
        paused, read = 300 < n <= 340, 0 if 300 < n <= 340 else 4100 if n == 341 else 100
        unread = (n - 300) * 100 if paused else 0
        record.series.add("in", Sample(n / 10, 0.1, read, read, 0, unread, 1, 0.0, read, 0, 0))
        record.series.add("work", Sample(n / 10, 0.1, read, read, 0, 50, 1, 0.1, 0, read, 10))
    found = score(record, ())
    assert found["ai_sps"]["spikes"] == [] and "no spike" in found["ai_sps"]["reason"]


def test_scoring_loads_neither_spark_nor_a_plotting_library(tmp_path: Path) -> None:
    file = spike_csv(tmp_path / "other.csv")
    code = f"""
import sys
from elastream.cli.main import main
assert main(["score", {str(file)!r}, "--json"]) == 0
print([name for name in ("pyspark", "matplotlib", "sklearn", "pandas") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
