"""Policies on runs that were recorded: each plays the very run again, simulated, beside the run as it was."""

from collections.abc import Sequence
from dataclasses import dataclass

from elastream.errors import SettingError
from elastream.policies import with_latency
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.tournament.play import ORACLE, Match, each_once, pace_of, pace_words, players
from elastream_lab.bench.tournament.recorded_run import RecordedRun
from elastream_lab.bench.tournament.score import Entry, share_within

AS_IT_RAN = "as it ran: "
"""Before the name of the policy that a run had: measured, and not played."""


@dataclass(frozen=True)
class RunContest:
    """Policies on the runs' own operators, arrivals, guards and machines."""

    policies: tuple[str, ...]
    runs: tuple[RecordedRun, ...]
    latency_s: float = 1.0
    td_s: float | None = None
    """Policies decide this often; None: at their own pace, else as often as the run's own."""
    seed: int = 0

    def __post_init__(self) -> None:
        for what, value in (("latency_s", self.latency_s), ("td_s", self.td_s)):
            if value is not None and not 0 < value < float("inf"):
                raise SettingError(f"tournament: {what} must be more than 0, got {value:g}")
        each_once("policies", self.policies)
        each_once("runs", [run.name for run in self.runs])

    @property
    def note(self) -> str:
        said = [
            f"{run.name}: {run.tuples:,} tuples in {run.seconds:,.0f} s, decisions {pace_words(self.td_s, run.td_s)}"
            for run in self.runs
        ]
        return (
            f"Recorded runs, played again on the simulator with their own operators and arrivals: {'; '.join(said)}. In time is a "
            f"tuple that is finished within {self.latency_s:g} s. The rows {AS_IT_RAN}... were measured; what a journal does not tell is -."
        )

    def matches(self) -> list[Match]:
        return [
            Match(run.name, self._scenario(policy, run), run.application, run.guards)
            for run in self.runs
            for policy in players(self.policies)
        ]

    @property
    def facts(self) -> object:
        runs = [
            {
                "run": run.name,
                "policy": run.as_it_ran.policy,
                "seconds": run.seconds,
                "tuples": run.tuples,
                "td_s": run.td_s,
                "operators": run.application.times,
            }
            for run in self.runs
        ]
        told = {name: getattr(self, name) for name in ("policies", "latency_s", "td_s", "seed")}
        return told | {"runs": runs}

    def _scenario(self, policy: str, run: RecordedRun) -> Scenario:
        told = with_latency(policy, self.latency_s)
        return Scenario(policy, policy=told, td_s=pace_of(told, self.td_s, run.td_s), seed=self.seed)


def as_they_ran(contest: RunContest, played: Sequence[Entry]) -> list[Entry]:
    """The runs themselves, beside those who `played` them."""
    best = {entry.trace: entry.replica_seconds for entry in played if entry.policy == ORACLE}
    return [_entry(run, best[run.name], contest.latency_s) for run in contest.runs]


def _entry(run: RecordedRun, best: float, latency_s: float) -> Entry:
    ran = run.as_it_ran
    shown: dict[str, float] = ran.latencies.summary_ms() if ran.latencies else {}
    in_time = share_within(ran.latencies, latency_s, ran.finished, ran.lost + ran.queued) if ran.latencies else None
    return Entry(
        run.name,
        AS_IT_RAN + ran.policy,
        ran.replica_seconds,
        ran.replica_seconds / best,
        None if ran.mean_s is None else ran.mean_s * 1e3,
        shown.get("p50"),
        shown.get("p95"),
        shown.get("p99"),
        in_time,
        None,
        ran.rescales,
        ran.moments,
        ran.lost,
    )
