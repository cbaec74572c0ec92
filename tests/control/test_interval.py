"""The interval between two decisions: the user's, else the policy's own pace, else the default."""

import inspect
from pathlib import Path

import pytest

from elastream import Policy, Proposal, Topology, sources, start
from elastream.cli.main import main
from elastream.control import interval_of, read_run
from elastream.errors import SettingError
from elastream.testing import LocalEngine
from elastream.workload import constant
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.tournament.play import TraceContest
from elastream_lab.bench.tournament.runs import RunContest


def flow(seconds: float) -> Topology:
    made = Topology("flow")
    made.source("in", sources.replay(constant(20, seconds)))
    made.map("same", lambda row: row, after="in", replicas=(1, 4)).output("out")
    return made


class Quick(Policy):
    every_s = 0.5

    def propose(self, observation: object) -> Proposal:
        return Proposal()


@pytest.mark.parametrize(
    ("policy", "td_s", "interval_s", "own"),
    [
        ("elastic", 10.0, 10.0, False),
        ("elastic", None, 0.125, True),
        ("elastic:latency_s=4", None, 0.5, True),
        (Quick(), 2.0, 2.0, False),
        (Quick(), None, 0.5, True),
        ("psps", None, 5.0, False),
        ("psps", 2.0, 2.0, False),
    ],
)
def test_a_run_decides_as_often_as_its_user_says_and_says_so(
    tmp_path: Path, policy: str | Policy, td_s: float | None, interval_s: float, own: bool
) -> None:
    with LocalEngine(virtual=True).start(flow(25.0), str(tmp_path), policy=policy, td_s=td_s) as handle:
        assert handle.td_s == interval_s
        handle.await_end(60)
    kept = read_run(str(tmp_path), "test")
    assert {(entry.td_s, entry.own_pace) for entry in kept} == {(interval_s, own)}
    looks = [look.seconds for entry in kept for look in entry.all_looks]
    # A look is as late as a tick is long, and never early.
    assert all(interval_s <= seconds < interval_s + 1.0 for seconds in looks)
    assert sum(looks) > 14.0


def test_no_interval_is_set_unless_the_user_sets_one() -> None:
    assert inspect.signature(start).parameters["td_s"].default is None
    assert Scenario("a").td_s is None and TraceContest(("psps",), ("covid_tweets",)).td_s is None


def test_in_a_tournament_the_users_interval_is_everybodys_but_the_clairvoyants() -> None:
    def paces(td_s: float | None = None) -> dict[str, float | None]:
        contest = TraceContest(("psps", "elastic"), ("constant:per_second=9,seconds=60",), latency_s=2.0, td_s=td_s)
        return {match.scenario.name: match.scenario.td_s for match in contest.matches()}

    assert paces() == {"oracle": 0.25, "psps": 1.0, "elastic": 0.25}
    assert paces(td_s=3.0) == {"oracle": 0.25, "psps": 3.0, "elastic": 3.0}
    assert inspect.signature(RunContest).parameters["td_s"].default is None


def test_a_pace_that_cannot_be_is_refused_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    class Never(Quick):
        every_s = 0.0

    with pytest.raises(SettingError, match="policy 'Never': every_s must be more than 0 or None, got 0"):
        interval_of(Never(), None)
    for td_s in (0.0, -1.0, float("nan"), float("inf"), "soon", True):
        with pytest.raises(SettingError, match="td_s must be more than 0"):
            LocalEngine().start(flow(1.0), policy="elastic", td_s=td_s)
    assert main(["simulate", "tweets", "--policy", "elastic", "--td", "0"]) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].endswith("td_s must be more than 0, got 0")


def test_the_command_run_needs_no_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # What is wrong here is looked at after the interval, and before Spark.
    assert main(["run", "tweets", "--replicas", "nobody=2@1"]) == 2
    assert "no operator 'nobody'" in capsys.readouterr().err
