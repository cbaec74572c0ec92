"""Policies beside one another, on Spark, from end to end; and the time of a decision."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from elastream.cli.main import main
from elastream_lab.bench.papers.decisions import bench_decisions, decision_table


def test_policies_are_compared_on_the_same_workload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("t_seconds,events\n0,300\n2,1200\n4,300\n")
    words = ["bench", "policies", "psps", "static:replicas=2@least_loaded", "--app", "tweets", "--trace", str(trace)]
    assert (
        main(
            [
                *words,
                "--td",
                "1",
                "--pool",
                "3",
                "--service-ms",
                "1",
                "--r-over",
                "12",
                "--report",
                str(tmp_path),
                "--json",
            ]
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["psps", "static:replicas=2@least_loaded"]
    for report in document.values():
        assert report["events"] == {
            "entered": 1800,
            "finished": 1800,
            "dropped": 0,
            "queued": 0,
            "duplicates": 0,
            "created": 0,
            "dead_letters": 0,
        }
        assert report["processed_ratio"] == 1.0
    assert document["static:replicas=2@least_loaded"]["saved_resources"] == pytest.approx(1 / 3, abs=1e-5)
    assert document["static:replicas=2@least_loaded"]["rescales"] == 0
    text = (tmp_path / "policies.md").read_text()
    assert "| psps |" in text and "replica seconds" in text
    assert len(np.unique(imread(tmp_path / "policies.png").reshape(-1, 4), axis=0)) > 50
    assert (tmp_path / "psps" / "report.html").is_file()


def test_a_decision_is_timed_for_graphs_of_many_sizes() -> None:
    times = bench_decisions("ds2")
    assert [(time.operators, time.lanes) for time in times] == [(10, 80), (100, 800), (1000, 8000)]
    # A hundred times the operators: not much more than a hundred times as long, however fast the machine is.
    assert times[2].ms < 300 * times[0].ms
    assert "| 1000 | 8000 |" in decision_table(times)
