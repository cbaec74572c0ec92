"""Policies on a set of traces, on the simulator: one table, one picture, and a gate."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from elastream.cli.main import main
from elastream.errors import SettingError
from elastream.policies import with_latency
from elastream.report.latency import Latencies
from elastream_lab.bench.tournament.play import TraceContest
from elastream_lab.bench.tournament.report import rows_of
from elastream_lab.bench.tournament.score import Entry, Gate, beats, front, judge, standings


def entry(policy: str, ratio: float, within: float | None, trace: str = "a") -> Entry:
    return Entry(trace, policy, ratio * 1000, ratio, 120.0, 100.0, 200.0, 300.0, within, None, 7, 3, 0)


def test_the_front_is_whom_nobody_beats_in_both() -> None:
    cheap, punctual, worse, same = (
        entry("cheap", 1.1, 0.9),
        entry("punctual", 1.3, 0.99),
        entry("worse", 1.4, 0.98),
        entry("same", 1.1, 0.9),
    )
    assert front([cheap, punctual, worse, same]) == ["cheap", "punctual", "same"]
    assert beats(punctual, worse) and not beats(cheap, punctual) and not beats(cheap, same)


def test_a_standing_has_the_mean_and_the_worst_of_all_traces() -> None:
    found = standings([entry("psps", 1.1, 0.9), entry("psps", 1.5, 0.7, trace="b")])
    assert [(s.policy, round(s.ratio, 6), s.worst_ratio) for s in found] == [("psps", 1.3, 1.5)]
    assert (round(found[0].within or 0, 6), found[0].least_within, found[0].rescales) == (0.8, 0.7, 14)
    assert (round(found[0].replica_seconds), found[0].moments) == (1300, 6)


def test_a_run_whose_lateness_nobody_knows_beats_nobody_and_is_beaten_by_nobody() -> None:
    unknown, known = entry("as it ran: mine", 1.0, None), entry("psps", 1.5, 0.9)
    assert front([unknown, known]) == ["psps"]
    assert [(s.policy, s.within, s.least_within) for s in standings([unknown])] == [("as it ran: mine", None, None)]
    heads, rows = rows_of([unknown])
    assert dict(zip(heads, rows[0], strict=True))["in time"] == "-"


def test_the_gate_lets_nobody_pass_who_is_worse_in_cost_or_in_time() -> None:
    reference = entry("elastic", 1.0, 0.99)
    assert judge([reference, entry("mine", 1.04, 0.95)], "mine").passed
    assert judge([reference, entry("mine", 1.06, 0.99)], "mine") == Gate("mine", 1.06, 0.99, 0.99)
    assert not judge([reference, entry("mine", 1.06, 0.999)], "mine").passed
    # Cheap is who leaves tuples lying about.
    assert not judge([reference, entry("mine", 0.8, 0.93)], "mine").passed


def test_policies_that_keep_a_latency_are_told_which() -> None:
    assert with_latency("oracle", 0.5) == "oracle:latency_s=0.5"
    assert with_latency("drs:observed=1", 2.0) == "drs:observed=1,latency_ms=2000"
    assert with_latency("drs:latency_ms=9", 2.0) == "drs:latency_ms=9"
    assert with_latency("psps", 2.0) == "psps"


def test_a_trace_is_compressed_into_the_time_or_keeps_its_speed_and_fills_the_pool() -> None:
    contest = TraceContest(
        ("psps",), ("ramp:start=0,end=500,seconds=100", "constant:per_second=50,seconds=100@2"), seconds=50.0
    )
    scenarios = [match.scenario for match in contest.matches()]
    assert [scenario.name for scenario in scenarios] == ["oracle", "psps"] * 2
    assert [(scenario.speed, scenario.seconds) for scenario in scenarios[1:3]] == [(2.0, None), (2.0, 50.0)]
    # 32 replicas of 20 ms serve 1,600 tuples per second; two thirds of that are 1,067.
    arrivals = scenarios[3].arrivals()
    assert arrivals is not None and arrivals.mean_per_s == pytest.approx(1066.7, rel=0.01)
    with pytest.raises(SettingError, match="expected a number behind the @, got 'fast'"):
        TraceContest(("psps",), ("covid_tweets@fast",)).matches()
    with pytest.raises(SettingError, match="expected policies, each once, got psps, psps"):
        TraceContest(("psps", "psps"), ("covid_tweets",))


def test_the_share_in_time_is_taken_from_the_buckets() -> None:
    latencies = Latencies()
    latencies.add(np.array([0.01] * 90 + [3.0] * 10))
    assert latencies.within(1.0) == pytest.approx(0.9)
    assert (latencies.within(3.0), latencies.within(0.001)) == (1.0, 0.0)


def test_a_tournament_leaves_a_table_a_picture_and_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tournament", "--trace", "sine:low=50,high=300,period_s=15,seconds=30", "--seconds", "30", "--pool", "6"]
    more = ["--service-ms", "20", "--system", "storm", "--jobs", "1", "--report", str(tmp_path), "--json"]
    assert main([*words, *more, "--gate", "static:replicas=6"]) == 1
    document = json.loads(capsys.readouterr().out)
    found = {entry["policy"]: entry for entry in document["entries"]}
    assert list(found) == ["oracle", "static:replicas=6", "elastic"]
    assert found["oracle"]["ratio"] == 1.0 < found["elastic"]["ratio"] < found["static:replicas=6"]["ratio"]
    assert (
        found["elastic"]["within"] >= 0.99 <= found["oracle"]["within"] and found["static:replicas=6"]["rescales"] == 0
    )
    # Four operators are rescaled at some of the moments at which any is.
    assert 0 < found["elastic"]["moments"] < found["elastic"]["rescales"]
    folder = tmp_path / "simulated-storm"
    assert "| elastic |" in (folder / "tournament.md").read_text()
    assert (folder / "tournament.csv").read_text().startswith("trace,policy,replica_seconds,ratio")
    assert "over clairvoyant" in (folder / "tournament.html").read_text()
    assert len(np.unique(imread(folder / "tournament.png").reshape(-1, 4), axis=0)) > 50
    assert not document["gate"]["passed"] and document["gate"]["against"] > 1.4
    assert main([*words, *more, "--gate", "elastic"]) == 2
    assert "expected another policy" in capsys.readouterr().err
