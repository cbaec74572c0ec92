"""Suites: YAML that is checked, and a runner that keeps what is done."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from elastream.errors import SettingError
from elastream.report import Events, Record, Sample, write_report
from elastream.report.scores.score import score
from elastream.workload.traces import find_trace
from elastream_lab.bench.suites.outcomes import COLUMNS, Outcome, paper_table
from elastream_lab.bench.suites.paper_order import order_line, pairs_alike
from elastream_lab.bench.suites.runner import Plant, Progress, models_of, run_suite
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.suite import Suite, load_suite, parse_suite, suite_names

GOOD = """\
title: Two sizes
note: Look at the latency.
defaults:
  app: dns
  workload: "constant:per_second=100,seconds=10"
  td_s: 2
scenarios:
  - name: small
    policy: static:replicas=1
  - {name: large, policy: "static:replicas=4", td_s: 3.5, spikes: ["at_s=2,time_to_peak_s=1,duration_s=3,magnitude=2"]}
"""


def test_a_suite_is_its_defaults_and_what_each_scenario_says_itself() -> None:
    suite = parse_suite("two", GOOD, "two.yaml")
    assert (suite.name, suite.title, suite.note) == ("two", "Two sizes", "Look at the latency.")
    small, large = suite.scenarios
    assert (small.name, small.app, small.policy, small.td_s) == ("small", "dns", "static:replicas=1", 2)
    assert (large.td_s, len(large.spikes)) == (3.5, 1)
    assert small.arrivals() is not None and small.arrivals().total == 1000  # type: ignore[union-attr]
    assert large.arrivals().total > 1000  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "policy: static:replicas=1",
            "polcy: psps",
            r"line 8: scenario 'small': unknown key 'polcy'; did you mean 'policy'\?",
        ),
        ("title:", "columns: [latency]\ntitle:", r"line 1: columns: no column 'latency'; did you mean 'latency ms'\?"),
        ("title:", "columns: lost\ntitle:", "line 1: columns: expected a list, got 'lost'"),
        ("title:", "titel:", r"line 1: unknown key 'titel'; did you mean 'title'\?"),
        ("td_s: 2", "td_s: soon", "td_s: expected a number, got 'soon'"),
        ("td_s: 2", "td_s: -2", "scenario 'small': .*-2"),
        ("td_s: 2", "td_s: true", "td_s: expected a number, got True"),
        ("td_s: 2", "q_size: 1.5", "q_size: expected a whole number, got 1.5"),
        ("td_s: 2", "on_full: explode", "on_full: expected wait or drop, got 'explode'"),
        ("td_s: 2", "td_s: 2\n  td_s: 3", "line 7: 'td_s' is said twice"),
        ("static:replicas=1", "statik", "scenario 'small': .*statik"),
        ("name: large", "name: small", "two scenarios are named 'small'"),
        ("- name: small\n    policy", "- policy", "line 8: a scenario: expected a name"),
        ("- name: small\n    policy: static:replicas=1", "- small", "line 8: expected keys with values"),
        ('"constant:per_second=100,seconds=10"', "~", "spikes and burst_s change a workload"),
        ("scenarios:", "scenarios: {", r"suite two.yaml, line \d+: .*expected"),
    ],
)
def test_what_is_wrong_in_a_suite_is_said_with_its_place(before: str, after: str, said: str) -> None:
    assert before in GOOD
    with pytest.raises(SettingError, match=said) as raised:
        parse_suite("two", GOOD.replace(before, after), "two.yaml")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["", "title: x\n", "title: x\nscenarios: []\n", "- 1\n"])
def test_a_suite_without_scenarios_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match=r"two\.yaml"):
        parse_suite("two", text, "two.yaml")


def authors_traces(folder: Path) -> Path:
    """Files of the names that the suites of the PSPS paper look for."""
    for name in ("tweets", "tweets_raw", "dns"):
        (folder / f"psps_authors_{name}_1s.csv").write_text("t_seconds,events\n0,100\n1,300\n2,200\n")
    return folder


def test_every_suite_that_ships_can_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = suite_names()
    assert [f"psps-table-{number}" for number in range(4, 13)] == [n for n in names if n.startswith("psps-")]
    assert {"ai-sps", "psps", "smoke"} <= set(names)
    monkeypatch.setenv("ELASTREAM_TRACES", str(authors_traces(tmp_path)))
    for name in names:
        suite = load_suite(name)
        assert suite.title and suite.note, name
        for scenario in suite.scenarios:
            arrivals = scenario.arrivals()
            assert arrivals is not None and arrivals.total > 100, (name, scenario.name)


def test_a_trace_that_does_not_ship_is_looked_for_in_several_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, named, told = (tmp_path / name for name in ("here", "named", "told"))
    for folder in (here, named, told):
        folder.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("ELASTREAM_TRACES", str(named))
    suite = load_suite("psps-table-12")
    with pytest.raises(SettingError, match=f"no such file; looked in {here}, {named}; name its directory with"):
        suite.scenarios[0].arrivals()
    with pytest.raises(SettingError, match=f"no such file; looked in {told}, {here}, {named}; name"):
        suite.with_traces(str(told))
    # Each is preferred to those before it.
    for folder, events in ((named, 2), (here, 3)):
        (folder / "psps_authors_dns_1s.csv").write_text(f"t_seconds,events\n0,{events}\n")
        assert suite.scenarios[0].arrivals().total == events  # type: ignore[union-attr]
    (told / "psps_authors_dns_1s.csv").write_text("t_seconds,events\n0,4\n")
    assert suite.with_traces(str(told)).scenarios[0].arrivals().total == 4  # type: ignore[union-attr]
    assert find_trace("psps_authors_dns_1s") == Path("psps_authors_dns_1s.csv")


def test_an_unknown_suite_is_refused_with_a_hint() -> None:
    with pytest.raises(SettingError, match=r"did you mean 'smoke'\?"):
        load_suite("smok")


class Ledger:
    """A plant that writes down what it was asked to run, and a report of a run of one sample each second."""

    name = "ledger"

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.seen: list[Progress] = []
        self.fails_at = ""

    def seconds(self, scenario: Scenario) -> float:
        return 10.0

    def run(self, scenario: Scenario, folder: Path, progress: Progress) -> None:
        if scenario.name == self.fails_at:
            raise KeyboardInterrupt
        self.ran.append(scenario.name)
        self.seen.append(progress)
        record = Record(scenario.app, ("in",), pools={"work": 4}, policy=scenario.policy)
        for second in range(1, 11):
            record.series.add("in", Sample(second, 1.0, 100, 100, 0, 0, 1, 0.0, entered=100))
            record.series.add("work", Sample(second, 1.0, 100, 100, 0, 5, 2, 0.5, finished=100))
            record.latencies.add(np.full(100, 0.2))
        write_report(record, Events(1000, 1000, 0, 0, 0), folder, scenario.r_over)


SUITE = Suite("three", "Three <sizes>", tuple(Scenario(name, r_over=4) for name in ("a b", "a/b", "c")), "A note.")


def test_a_suite_writes_one_table_in_three_forms_a_picture_and_a_page(tmp_path: Path) -> None:
    plant: Plant = Ledger()
    outcomes = run_suite(SUITE, plant, tmp_path, print)
    assert [outcome.label for outcome in outcomes] == ["a b", "a/b", "c"]
    table = (tmp_path / "three.md").read_text()
    assert "| a b | 0.5000 |" in table and table.startswith("# Three <sizes>\n\nA note.\n")
    rows = list(csv.DictReader((tmp_path / "three.csv").read_text().splitlines()))
    assert [row["scenario"] for row in rows] == ["a b", "a/b", "c"]
    assert float(rows[0]["saved"]) == 0.5 and rows[0]["AI-SPS"] == ""
    assert list(rows[0]) == ["scenario", *COLUMNS]
    assert json.loads((tmp_path / "three.json").read_text())["c"]["saved_resources"] == 0.5
    assert (tmp_path / "three.png").stat().st_size > 10_000
    page = (tmp_path / "three.html").read_text()
    assert "Three &lt;sizes&gt;" in page and "a-b/report.html" in page
    # Two names that a file system would take for one.
    assert len({outcome.folder for outcome in outcomes}) == 3


def test_degradation_over_one_window_can_be_compared_between_intervals() -> None:
    record = Record("r", ("in",), pools={"work": 1}, interval_s=10.0)
    for n in range(1, 41):
        # What comes in one second leaves in the next but four.
        out = 100 if n % 8 >= 4 else 0
        came = 100 if n % 8 < 4 else 0
        record.series.add("in", Sample(float(n), 1.0, came, came, 0, 0, 1, 0.0, came, 0, 0))
        record.series.add("work", Sample(float(n), 1.0, came, out, 0, 0, 1, 0.1, 0, out, 0))
    assert score(record, ())["throughput_degradation"] < 0.5
    record.window_s = 1.0
    assert score(record, ())["throughput_degradation"] == pytest.approx(1.0)
    with pytest.raises(SettingError, match="window_s must be more than 0"):
        Scenario("s", window_s=0.0)


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    plant, said = Ledger(), list[str]()
    plant.fails_at = "c"
    with pytest.raises(KeyboardInterrupt):
        run_suite(SUITE, plant, tmp_path, said.append)
    assert "| a/b |" in (tmp_path / "three.md").read_text()
    plant.fails_at = ""
    assert len(run_suite(SUITE, plant, tmp_path, said.append)) == 3
    assert plant.ran == ["a b", "a/b", "c"]
    assert said == ["kept from an earlier run: a b, a/b; --again runs them anew"]
    run_suite(SUITE, plant, tmp_path, said.append, again=True)
    assert plant.ran == ["a b", "a/b", "c"] * 2


def test_what_a_scenario_learns_is_known_in_the_next_and_forgotten_when_the_suite_runs_again(tmp_path: Path) -> None:
    class Learns(Ledger):
        def __init__(self) -> None:
            super().__init__()
            self.knew: list[bool | None] = []

        def run(self, scenario: Scenario, folder: Path, progress: Progress) -> None:
            models = models_of(scenario, folder)
            self.knew.append(None if models is None else Path(models).exists())
            if models is not None:
                Path(models).mkdir(parents=True, exist_ok=True)
            super().run(scenario, folder, progress)

    names = {"first": "m", "second": "m", "another": "n", "none": None}
    suite = Suite("learns", "L", tuple(Scenario(name, r_over=4, models=models) for name, models in names.items()), "")
    plant = Learns()
    run_suite(suite, plant, tmp_path, print)
    assert plant.knew == [False, True, False, None]
    run_suite(suite, plant, tmp_path, print, again=True)
    assert plant.knew[4:] == [False, True, False, None]


def test_a_scenario_that_was_changed_runs_again(tmp_path: Path) -> None:
    plant = Ledger()
    run_suite(SUITE, plant, tmp_path, lambda words: None)
    first, *others = SUITE.scenarios
    run_suite(replace(SUITE, scenarios=(replace(first, td_s=7.0), *others)), plant, tmp_path, lambda words: None)
    assert plant.ran == ["a b", "a/b", "c", "a b"]
    # A report that was only half written counts for nothing.
    (tmp_path / "c" / "scenario.json").write_text("{")
    run_suite(SUITE, plant, tmp_path, lambda words: None)
    assert plant.ran[-2:] == ["a b", "c"]


def test_the_time_left_is_that_of_the_scenarios_to_come(tmp_path: Path) -> None:
    plant = Ledger()
    run_suite(SUITE, plant, tmp_path, lambda words: None)
    assert [(p.number, p.of, p.done_s, p.its_s, p.left_s) for p in plant.seen] == [
        (1, 3, 0.0, 10.0, 20.0),
        (2, 3, 10.0, 10.0, 10.0),
        (3, 3, 20.0, 10.0, 0.0),
    ]


def test_rows_are_compared_with_the_papers_pair_by_pair(tmp_path: Path) -> None:
    def row(name: str, latency_ms: float) -> Outcome:
        return Outcome(name, tmp_path, {"latency_ms": {"mean": latency_ms}}, Record("r", ()), ())

    rows = [row("a", 10.0), row("b", 20.0), row("c", 15.0), row("of nobody", 1.0)]
    paper = {"a": {"latency ms": 100.0}, "b": {"latency ms": 200.0}, "c": {"latency ms": 300.0}}
    assert pairs_alike(rows, paper) == {"latency ms": (2, 3)}
    assert order_line(rows, paper) == "Pairs of rows in the paper's order: latency ms 2 of 3."
    # A hundredth is no difference.
    assert pairs_alike(rows, {"a": {"latency ms": 100.0}, "b": {"latency ms": 100.9}}) == {}
    assert order_line(rows, {}) == ""


def test_a_row_of_the_papers_table_has_a_cell_for_every_column_that_any_row_has(tmp_path: Path) -> None:
    report = {"latency_ms": {"mean": 12.0}, "saved_resources": -1e-9}
    rows = [Outcome(name, tmp_path, report, Record("r", ()), ()) for name in ("a", "b")]
    shown = paper_table(rows, {"a": {"latency ms": 9.0}, "b": {"saved": 0.5, "latency ms": 8.0}})
    assert "| a | 12 / 9 |  |" in shown
    assert "| b | 12 / 8 | 0.0000 / 0.5000 |" in shown


def test_tuples_of_a_second_may_come_at_once() -> None:
    scenario = Scenario("s", workload="steps:rates=10/30,seconds=3", burst_s=1.0)
    arrivals = scenario.arrivals()
    assert arrivals is not None and arrivals.total == 60
    assert [arrivals.due_by(second) for second in (0.0, 0.002, 0.9, 1.002, 1.9, 2.002)] == [0, 10, 10, 30, 30, 60]
    with pytest.raises(SettingError, match="burst_s must be more than 0"):
        Scenario("s", workload="steps:rates=10/30,seconds=3", burst_s=0.0).arrivals()
    with pytest.raises(SettingError, match="burst_s change a workload; name one"):
        Scenario("s", burst_s=1.0)
