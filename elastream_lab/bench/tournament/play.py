"""A tournament: policies on a set of traces, on the simulator; replica seconds against the clairvoyant's, and who was in time.

Traces, as here, or runs that were recorded (`tournament_runs`): both are a list of matches.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children
from typing import Protocol

import numpy as np

from elastream.codec import convert
from elastream.control import Guards, interval_of
from elastream.errors import SettingError
from elastream.policies import make_policy, with_latency
from elastream.report.latency import Latencies
from elastream.report.write import make_report
from elastream.simulator.application import Application
from elastream.workload import parse_workload
from elastream_lab.bench.suites.outcomes import Report
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.simulator_plant import SimulatorPlant
from elastream_lab.bench.tournament.score import REFERENCE, Entry, share_within

ORACLE = "oracle"
PACE_S = 1.0
"""Seconds between two decisions of policies on traces that have no own pace."""
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

    @property
    def facts(self) -> object:
        """For the report: a value that the codec encodes."""


@dataclass(frozen=True)
class TraceContest:
    """Policies on traces, each scaled to the same pool."""

    policies: tuple[str, ...]
    traces: tuple[str, ...]
    """Names, files or shapes; with `@SPEED` a trace keeps this speed and is cut, else it is compressed into `seconds`."""
    latency_s: float = 1.0
    """What every tuple should be finished within. Policies that keep a latency are told so."""
    td_s: float | None = None
    """Policies decide this often; None: at their own pace, else every second."""
    pool: int = 32
    service_ms: float = 20.0
    seconds: float = 600.0
    seed: int = 0

    def __post_init__(self) -> None:
        for what in ("latency_s", "td_s", "service_ms", "seconds", "pool"):
            value = getattr(self, what)
            if value is not None and not 0 < value < float("inf"):
                raise SettingError(f"tournament: {what} must be more than 0, got {value:g}")
        each_once("policies", self.policies)
        each_once("traces", self.traces)

    @property
    def note(self) -> str:
        return (
            f"Every trace is scaled so that its busiest {self.latency_s:g} s take two thirds of {self.pool} replicas per operator, "
            f"{self.service_ms:g} ms a tuple and operator, {self.seconds:g} s of virtual time. In time is a tuple that is finished "
            f"within {self.latency_s:g} s; policies decide {pace_words(self.td_s, PACE_S)}."
        )

    def matches(self) -> list[Match]:
        return [
            Match(trace, self._scenario(policy, trace)) for trace in self.traces for policy in players(self.policies)
        ]

    @property
    def facts(self) -> object:
        return self

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
        told = with_latency(policy, self.latency_s)
        return Scenario(
            name=policy,
            policy=told,
            workload=word,
            speed=speed,
            scale=LOAD * self.pool / (self.service_ms / 1e3) / peak,
            td_s=pace_of(told, self.td_s, PACE_S),
            pool=self.pool,
            service_ms=self.service_ms,
            # What is compressed is played to its end, until all is served.
            seconds=self.seconds if fixed else None,
            seed=self.seed,
        )


def pace_words(td_s: float | None, default_s: float) -> str:
    return f"at their own pace, else every {default_s:g} s" if td_s is None else f"every {td_s:g} s"


def each_once(what: str, words: Sequence[str]) -> None:
    if not words or len(set(words)) < len(words):
        raise SettingError(f"tournament: expected {what}, each once, got {', '.join(words) or 'none'}")


def players(policies: Sequence[str]) -> tuple[str, ...]:
    """The clairvoyant plays always, and first."""
    return tuple(dict.fromkeys((ORACLE, *policies)))


def pace_of(policy: str, td_s: float | None, default_s: float) -> float:
    """Seconds between two decisions of a player: as the user says, else its own pace, else `default_s`.

    The clairvoyant keeps its own pace: a bound must not be coarser than the others.
    """
    made = make_policy(policy)
    return interval_of(made, None if made.name == ORACLE else td_s, default_s)


def play(contest: Contest, plant: SimulatorPlant, say: Callable[[str], None], *, jobs: int = 1) -> list[Entry]:
    """Every policy on every trace, `jobs` at a time."""
    matches = contest.matches()
    entries: list[Entry] = []
    with workers(jobs) if jobs > 1 else nullcontext() as pool:
        reports = (pool.map if pool else map)(partial(_run, plant), matches)
        best: dict[str, float] = {}
        for match, report in zip(matches, reports, strict=True):
            # The clairvoyant plays first.
            best.setdefault(match.trace, report["replica_seconds"])
            policy = match.scenario.name
            entries.append(_entry(match.trace, policy, report, best[match.trace], contest.latency_s))
            say(f"{len(entries)} of {len(matches)}: {policy} on {match.trace}")
    return entries


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes for the matches. Ctrl-C and errors end them at once, with what they have not begun."""
    before = set(active_children())
    # Ctrl-C is for the parent, which ends the others.
    pool = ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
    try:
        yield pool
    except BaseException:
        for child in set(active_children()) - before:
            child.terminate()
        # The pool's own thread waits for its processes. A second thread that waits for the same process may miss its end.
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _run(plant: SimulatorPlant, match: Match) -> Report:
    done = plant.simulate(match.scenario, guards=match.guards, application=match.application)
    return make_report(done.record, done.events)


def _entry(trace: str, policy: str, report: Report, best: float, latency_s: float) -> Entry:
    latencies, events, shown = convert(report["latencies"], Latencies, "report"), report["events"], report["latency_ms"]
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
