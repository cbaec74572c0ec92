"""`elastream ramp` and `elastream usual`: from a rising load to a table, from a trace or a journal to the usual load."""

import json
from pathlib import Path

import pytest
import yaml

from elastream.cli.main import main
from elastream.codec import to_plain
from elastream.control import Journal, JournalEntry
from elastream.fleet import Level
from elastream.lanes import Store
from elastream.policies import make_policy
from elastream.policies.multi_level.table import load_table
from elastream.policies.multi_level.usual import load_usual
from elastream.simulator.profile import load_profile as load_machine
from elastream.testing import observation, source

APP = "elastream_lab.bench.papers.multi_level_shapes:comd"


@pytest.fixture
def model(tmp_path: Path) -> list[str]:
    """A spout that waits and two analyses that compute, on machines of two cores; a machine takes 5 s to start."""
    document = to_plain(load_machine(None))
    times = {"cpu": 1.0, "spread": 0.0, "call_s": 0.0, "shares": {}}
    document["apps"] = {
        APP: {
            "iterations": {**times, "service_s": 1e-6, "shares": {"spout": 1.0}},
            "spout": {**times, "service_s": 0.002, "cpu": 0.1, "shares": {"histogram": 1.0, "distance": 1.0}},
            "histogram": {**times, "service_s": 0.01},
            "distance": {**times, "service_s": 0.01},
        }
    }
    (tmp_path / "machine.json").write_text(json.dumps(document), encoding="utf-8")
    startup = {"process_s": 1, "machine_s": 5, "process_gb": 2, "machines": 1}
    cluster = {"nodes": [{"count": 3, "cores": 2, "memory_gb": 4}], "startup": startup}
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(cluster), encoding="utf-8")
    return [
        "--simulate", "--system", "storm", "--cluster", str(tmp_path / "cluster.yaml"), "--profile", str(tmp_path / "machine.json"),
    ]  # fmt: skip


def test_a_ramp_leaves_a_table_with_threads_before_machines(
    model: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "table.yaml")
    assert main(["ramp", APP, *model, "--step", "40", "--hold", "40", "--td", "5", "--most", "160", "--out", out]) == 0
    rows = load_table(out).rows
    executors = [row.configuration.levels[Level.EXECUTOR] for row in rows]
    replicas = [sum(row.configuration.replicas.values()) for row in rows]
    assert executors == sorted(executors) and replicas == sorted(replicas), "monotone"
    assert (executors[0], replicas[0]) == (1, 3), "one of each on one machine carries the first levels"
    assert (executors[-1], replicas[-1]) == (2, 5), "160/s is 1.6 cores of both analyses, twice"
    assert rows[0].up_to == 80 and rows[-1].up_to == 160
    shown = capsys.readouterr().out
    assert "health" in shown and "one executor more, there in 5 s" in shown
    assert make_policy(f"multi-level:table={out}").name == "multi-level"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--step", "0"], "ramp: step must be more than 0, got 0"),
        (["--most", "10", "--step", "20"], "ramp: most must be 1..1000 steps"),
        (["--td", "100"], "--td must be more than 0 and --hold at most, got 100"),
        (["--cluster", "x.yaml"], "--cluster is for a simulation; add --simulate"),
    ],
)
def test_a_ramp_that_makes_no_sense_is_refused(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ramp", "tweets", *words]) == 2
    assert problem in capsys.readouterr().err


def test_the_usual_load_is_learned_from_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "usual.yaml")
    words = ["usual", "steps:rates=100/400,seconds=200", "--period", "300", "--slot", "100", "--out", out]
    assert main(words) == 0
    usual = load_usual(out)
    assert usual.per_second == (100.0, 400.0, None)
    assert "2 slots of 100 s, 100 to 400 tuples/s, 1 gaps: reactive there" in capsys.readouterr().out


def test_the_usual_load_is_learned_from_the_journal_of_a_run(tmp_path: Path) -> None:
    base, out = tmp_path / "base", str(tmp_path / "usual.yaml")
    journal = Journal(Store(str(base)))
    for number in range(4):
        seen = observation(source("in", 500 * (number + 1)), seconds=10.0, ended_s=10.0 * (number + 1))
        journal.append(JournalEntry(number, "psps", seen, None, ()))
    assert main(["usual", str(base), "--period", "40", "--slot", "20", "--out", out]) == 0
    assert load_usual(out).per_second == (75.0, 175.0)
