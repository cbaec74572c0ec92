"""A tournament: policies on a set of traces, on the simulator; replica seconds against the clairvoyant's, and who was in time.

Traces, as here, or runs that were recorded (`tournament_runs`): both are a list of matches.
"""

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from elastream.bench.outcomes import Report
from elastream.bench.scenario import Scenario
from elastream.bench.simulator_plant import Application, SimulatorPlant
from elastream.bench.tournament_score import REFERENCE, Entry, share_within
from elastream.control import Guards
from elastream.errors import SettingError
from elastream.policies import POLICIES
from elastream.scoring.latency import Latencies
from elastream.scoring.report import make_report
from elastream.workload import parse_workload

ORACLE = "oracle"
LOAD = 2 / 3
"""The busiest seconds of a trace take so much of all replicas."""


@dataclass(frozen=True)
class Match:
    """One policy on one trace."""

    trace: str
    scenario: Scenario
    application: Application | None = None
    """Instead of the scenario's."""
    guards: Guards | None = None
    """Instead of the scenario's."""


class Contest(Protocol):
    """Who plays, and where."""

    @property
    def latency_s(self) -> float:
        """What every tuple should be finished within. Policies that keep a latency are told so."""

    @property
    def note(self) -> str:
        """How it was played, for people."""

    def matches(self) -> list[Match]:
        """The clairvoyant first on every trace."""

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class TraceContest:
    """Policies on traces, each scaled to the same pool."""

    policies: tuple[str, ...]
    traces: tuple[str, ...]
    """Names, files or shapes; with `@SPEED` a trace keeps this speed and is cut, else it is compressed into `seconds`."""
    latency_s: float = 1.0
    """What every tuple should be finished within. Policies that keep a latency are told so."""
    td_s: float = 1.0
    pool: int = 32
    service_ms: float = 20.0
    seconds: float = 600.0
    seed: int = 0

    def __post_init__(self) -> None:
        for what in ("latency_s", "td_s", "service_ms", "seconds", "pool"):
            if not 0 < getattr(self, what) < float("inf"):
                raise SettingError(f"tournament: {what} must be more than 0, got {getattr(self, what):g}")
        each_once("policies", self.policies)
        each_once("traces", self.traces)

    @property
    def note(self) -> str:
        return (
            f"Every trace is scaled so that its busiest {self.latency_s:g} s take two thirds of {self.pool} replicas per operator, "
            f"{self.service_ms:g} ms a tuple and operator, {self.seconds:g} s of virtual time. In time is a tuple that is finished "
            f"within {self.latency_s:g} s; policies decide every {self.td_s:g} s, or sooner when they ask for it."
        )

    def matches(self) -> list[Match]:
        return [
            Match(trace, self._scenario(policy, trace)) for trace in self.traces for policy in players(self.policies)
        ]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def _scenario(self, policy: str, trace: str) -> Scenario:
        word, _, fixed = trace.partition("@")
        try:
            speed = float(fixed) if fixed else 0.0
        except ValueError:
            raise SettingError(f"trace {trace!r}: expected a number behind the @, got {fixed!r}") from None
        arrivals = parse_workload(word, speed=speed or 1.0)
        if not fixed:
            speed = arrivals.seconds / self.seconds
            arrivals = parse_workload(word, speed=speed)
        busiest = arrivals.counts_at(np.arange(0.0, self.seconds, self.latency_s / 4))
        peak = float(np.max(busiest[4:] - busiest[:-4], initial=0.0)) / self.latency_s
        if not peak:
            raise SettingError(f"trace {trace!r}: nothing arrives in {self.seconds:g} s")
        return Scenario(
            name=policy,
            policy=with_target(policy, self.latency_s),
            workload=word,
            speed=speed,
            scale=LOAD * self.pool / (self.service_ms / 1e3) / peak,
            td_s=self.td_s,
            pool=self.pool,
            service_ms=self.service_ms,
            # What is compressed is played to its end, until all is served.
            seconds=self.seconds if fixed else None,
            seed=self.seed,
        )


def each_once(what: str, words: Sequence[str]) -> None:
    if not words or len(set(words)) < len(words):
        raise SettingError(f"tournament: expected {what}, each once, got {', '.join(words) or 'none'}")


def players(policies: Sequence[str]) -> tuple[str, ...]:
    """The clairvoyant plays always, and first."""
    return tuple(dict.fromkeys((ORACLE, *policies)))


def with_target(policy: str, latency_s: float) -> str:
    """A policy that keeps a latency is told which, unless its word says so already."""
    name, _, rest = policy.partition(":")
    known = inspect.signature(POLICIES[name]).parameters if name in POLICIES else {}
    said = {"latency_s": latency_s, "latency_ms": latency_s * 1e3}
    told = [f"{key}={value:g}" for key, value in said.items() if key in known and f"{key}=" not in rest]
    return f"{name}:{','.join(filter(None, [rest, *told]))}" if told else policy


def play(contest: Contest, plant: SimulatorPlant, say: Callable[[str], None], *, jobs: int = 1) -> list[Entry]:
    """Every policy on every trace, `jobs` at a time."""
    matches = contest.matches()
    entries: list[Entry] = []
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        reports = (pool.map if pool else map)(partial(_run, plant), matches)
        best: dict[str, float] = {}
        for match, report in zip(matches, reports, strict=True):
            # The clairvoyant plays first.
            best.setdefault(match.trace, report["replica_seconds"])
            policy = match.scenario.name
            entries.append(_entry(match.trace, policy, report, best[match.trace], contest.latency_s))
            say(f"{len(entries)} of {len(matches)}: {policy} on {match.trace}")
    return entries


def _run(plant: SimulatorPlant, match: Match) -> Report:
    done = plant.simulate(match.scenario, guards=match.guards, application=match.application)
    return make_report(done.record, done.events)


def _entry(trace: str, policy: str, report: Report, best: float, latency_s: float) -> Entry:
    latencies, events, shown = Latencies.from_json(report["latencies"]), report["events"], report["latency_ms"]
    return Entry(
        trace,
        policy,
        report["replica_seconds"],
        report["replica_seconds"] / best,
        shown["mean"],
        shown["p50"],
        shown["p95"],
        shown["p99"],
        share_within(latencies, latency_s, events["finished"], events["dropped"] + events["queued"]),
        report["ai_sps"]["index"],
        report["rescales"],
        len({decision["t_s"] for decision in report["decisions"]}),
        events["dropped"],
    )


def with_gate(policies: tuple[str, ...], gate: str | None) -> tuple[str, ...]:
    """The policy to be judged plays, and so does the reference."""
    if gate is None:
        return policies
    if gate == REFERENCE:
        raise SettingError(f"--gate {gate}: expected another policy than the one that it is judged by")
    return tuple(dict.fromkeys((*policies, gate, REFERENCE)))
