"""A tournament: policies on a set of traces, on the simulator; replica seconds against the clairvoyant's, and who was in time."""

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean

import numpy as np

from elastream.bench.outcomes import Report
from elastream.bench.scenario import Scenario
from elastream.bench.simulator_plant import SimulatorPlant
from elastream.errors import SettingError
from elastream.policies import POLICIES
from elastream.scoring.latency import Latencies
from elastream.scoring.report import make_report
from elastream.workload import parse_workload

ORACLE, REFERENCE = "oracle", "elastic"
LOAD = 2 / 3
"""The busiest seconds of a trace take so much of all replicas."""
GATE = 0.05
"""A policy may take so much more replica seconds than the reference, or must be in time more often."""


@dataclass(frozen=True)
class Contest:
    """Who plays, and where."""

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
        for what in ("policies", "traces"):
            words = getattr(self, what)
            if not words or len(set(words)) < len(words):
                raise SettingError(f"tournament: expected {what}, each once, got {', '.join(words) or 'none'}")

    def scenarios(self) -> list[tuple[str, Scenario]]:
        """Each with its trace, the clairvoyant first on every one."""
        players = dict.fromkeys((ORACLE, *self.policies))
        return [(trace, self._scenario(policy, trace)) for trace in self.traces for policy in players]

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


@dataclass(frozen=True)
class Entry:
    """How one policy did on one trace."""

    trace: str
    policy: str
    replica_seconds: float
    ratio: float
    """Its replica seconds over the clairvoyant's."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    within: float
    """The share of all tuples that were finished within the target; those lost or still queued were not."""
    index: float | None
    """AI-SPS."""
    rescales: int
    lost: int


@dataclass(frozen=True)
class Standing:
    """How one policy did on all traces."""

    policy: str
    ratio: float
    """The mean, and so below where no other word is said."""
    worst_ratio: float
    within: float
    least_within: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    index: float | None
    rescales: int
    """All together."""
    lost: int


def with_target(policy: str, latency_s: float) -> str:
    """A policy that keeps a latency is told which, unless its word says so already."""
    name, _, rest = policy.partition(":")
    known = inspect.signature(POLICIES[name]).parameters if name in POLICIES else {}
    said = {"latency_s": latency_s, "latency_ms": latency_s * 1e3}
    told = [f"{key}={value:g}" for key, value in said.items() if key in known and f"{key}=" not in rest]
    return f"{name}:{','.join(filter(None, [rest, *told]))}" if told else policy


def play(contest: Contest, plant: SimulatorPlant, say: Callable[[str], None], *, jobs: int = 1) -> list[Entry]:
    """Every policy on every trace, `jobs` at a time."""
    scenarios = contest.scenarios()
    words = [trace for trace, _ in scenarios]
    entries: list[Entry] = []
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        run = partial(_run, plant)
        reports = (pool.map if pool else map)(run, [scenario for _, scenario in scenarios])
        best: dict[str, float] = {}
        for trace, (_, scenario), report in zip(words, scenarios, reports, strict=True):
            # The clairvoyant plays first.
            best.setdefault(trace, report["replica_seconds"])
            entries.append(_entry(trace, scenario.name, report, best[trace], contest.latency_s))
            say(f"{len(entries)} of {len(scenarios)}: {scenario.name} on {trace}")
    return entries


def _run(plant: SimulatorPlant, scenario: Scenario) -> Report:
    done = plant.simulate(scenario)
    return make_report(done.record, done.events)


def _entry(trace: str, policy: str, report: Report, best: float, latency_s: float) -> Entry:
    latencies, events = Latencies.from_json(report["latencies"]), report["events"]
    everything = events["finished"] + events["dropped"] + events["queued"]
    return Entry(
        trace,
        policy,
        report["replica_seconds"],
        report["replica_seconds"] / best,
        report["latency_ms"]["p50"],
        report["latency_ms"]["p95"],
        report["latency_ms"]["p99"],
        latencies.within(latency_s) * events["finished"] / everything if everything else 1.0,
        report["ai_sps"]["index"],
        report["rescales"],
        events["dropped"],
    )


def standings(entries: Sequence[Entry]) -> list[Standing]:
    """In the order in which they played."""
    found = []
    for policy in dict.fromkeys(entry.policy for entry in entries):
        own = [entry for entry in entries if entry.policy == policy]
        indices = [entry.index for entry in own if entry.index is not None]
        found.append(
            Standing(
                policy,
                mean(e.ratio for e in own),
                max(e.ratio for e in own),
                mean(e.within for e in own),
                min(e.within for e in own),
                mean(e.p50_ms for e in own),
                mean(e.p95_ms for e in own),
                mean(e.p99_ms for e in own),
                mean(indices) if indices else None,
                sum(e.rescales for e in own),
                sum(e.lost for e in own),
            )
        )
    return found


def front(points: Sequence[Standing | Entry]) -> list[str]:
    """Those that nobody beats in both: cheaper and in time at least as often, or as cheap and in time more often."""
    return [p.policy for p in points if not any(beats(other, p) for other in points)]


def beats(one: Standing | Entry, other: Standing | Entry) -> bool:
    at_least = one.ratio <= other.ratio and one.within >= other.within
    return at_least and (one.ratio < other.ratio or one.within > other.within)


@dataclass(frozen=True)
class Gate:
    """A check for continuous integration: is a policy good enough to be merged?"""

    policy: str
    against: float
    """Its replica seconds over those of the reference, the mean over all traces."""
    within: float
    reference_within: float

    @property
    def passed(self) -> bool:
        return self.against <= 1 + GATE or self.within > self.reference_within

    @property
    def words(self) -> str:
        return (
            f"gate: {self.policy} takes {self.against:.3f} times the replica seconds of {REFERENCE}, "
            f"{self.within:.2%} in time against {self.reference_within:.2%}: {'passed' if self.passed else 'failed'}"
        )


def judge(entries: Sequence[Entry], policy: str) -> Gate:
    by = {(entry.trace, entry.policy): entry for entry in entries}
    traces = dict.fromkeys(entry.trace for entry in entries)
    pairs = [(by[trace, policy], by[trace, REFERENCE]) for trace in traces]
    return Gate(
        policy,
        mean(one.replica_seconds / other.replica_seconds for one, other in pairs),
        mean(one.within for one, _ in pairs),
        mean(other.within for _, other in pairs),
    )


def with_gate(contest: Contest, policy: str | None) -> Contest:
    """The policy to be judged plays, and so does the reference."""
    if policy is None:
        return contest
    if policy == REFERENCE:
        raise SettingError(f"--gate {policy}: expected another policy than the one that it is judged by")
    return replace(contest, policies=tuple(dict.fromkeys((*contest.policies, policy, REFERENCE))))
