"""Diagnosis of an interval: how long tuples wait for each operator, and which one is the bottleneck."""

from collections.abc import Iterable
from dataclasses import dataclass

from elastream import rules
from elastream.control.observation import Observation, OperatorObservation
from elastream.control.proposal import Decision

FALLS_BEHIND_S = 2.0
"""A source with more unread tuples than it reads in this time falls behind."""

MIN_SHARE = 0.02
"""An operator that held the others up for less of the time was no bottleneck of the run."""

BUSY_HOST = 0.9
"""The share of a core from which a host counts as busy."""


@dataclass(frozen=True)
class OperatorDiagnosis:
    """One operator over an interval. All of it is estimated from counts."""

    operator: str
    wait_s: float
    """Time that a tuple waits in the queue: by Little's law, tuples in the queue per tuples served in a second."""
    service_s: float
    busy: float
    """Share of the time of its replicas; 1 also if tuples wait for a second or longer, whatever the replicas are held up by."""
    work_s: float
    """Seconds that each replica needs for its part of the queue."""

    @property
    def latency_s(self) -> float:
        return self.wait_s + self.service_s

    @property
    def is_saturated(self) -> bool:
        return self.wait_s >= rules.FULL_S


@dataclass(frozen=True)
class Diagnosis:
    """One interval: its operators, and a verdict in one line."""

    operators: dict[str, OperatorDiagnosis]
    verdict: str
    bottleneck: str | None = None
    """The operator or source that holds the others up."""


def diagnose(observation: Observation, decisions: Iterable[Decision] = ()) -> Diagnosis:
    """`decisions` are the newest of the control loop; without a policy there are none."""
    operators = {name: _of_operator(one, observation.seconds) for name, one in observation.operators.items()}
    held = {one.operator: one for one in decisions if one.asked > one.after}
    scalable = {one.operator: one for one in observation.scalable()}
    suspects = [operators[name] for name in scalable if operators[name].is_saturated or name in held]
    if suspects:
        worst = max(suspects, key=lambda one: one.work_s)
        grows = next((one for one in decisions if one.operator == worst.operator and one.rescales), None)
        words = _bottleneck(worst, scalable[worst.operator], held.get(worst.operator), grows, observation)
        return Diagnosis(operators, words, worst.operator)
    for source in observation.operators.values():
        if source.role == "source" and source.queued > FALLS_BEHIND_S * _per_second(source.processed, observation) > 0:
            return Diagnosis(
                operators,
                f"source {source.operator} falls behind: {source.queued:,} tuples are not read",
                source.operator,
            )
    return Diagnosis(operators, _keeps_up(observation, [operators[name] for name in scalable]))


def _of_operator(one: OperatorObservation, seconds: float) -> OperatorDiagnosis:
    if one.role != "operator":
        return OperatorDiagnosis(one.operator, 0.0, one.service_seconds, 0.0, 0.0)
    work_s = one.queued * one.service_seconds / max(1, one.replicas)
    wait_s = one.queued * seconds / one.processed if one.processed else work_s
    used = one.busy_seconds / (seconds * max(1, one.replicas)) if seconds else 0.0
    busy = 1.0 if wait_s >= rules.FULL_S else min(used, 1.0)
    return OperatorDiagnosis(one.operator, wait_s, one.service_seconds, busy, work_s)


def _bottleneck(
    worst: OperatorDiagnosis,
    one: OperatorObservation,
    held: Decision | None,
    grows: Decision | None,
    observation: Observation,
) -> str:
    begin = f"{worst.operator} is the bottleneck: {one.replicas} of {one.most} replicas"
    waits = f"tuples wait {_time(worst.wait_s)}"
    if held is not None:
        return f"{begin}, wants {held.asked} ({_held_by(held)}), {waits}"
    if grows is not None:
        return f"{begin}, changes to {grows.after}, {waits}"
    if one.replicas < one.most and _hosts_are_busy(observation):
        return f"{begin}, {waits}, all hosts are busy"
    return f"{begin}, {waits}"


def _held_by(held: Decision) -> str:
    """The guards that refused, by their names: limit, slots, cooldown, ..."""
    names = dict.fromkeys(veto.partition(": ")[0] for veto in held.vetoes)
    return ", ".join("limit" if name == "limits" else name for name in names) or "refused"


def _hosts_are_busy(observation: Observation) -> bool:
    hosts = observation.hosts
    return bool(hosts) and all(host.busy_cores >= BUSY_HOST * host.cores for host in hosts)


def _keeps_up(observation: Observation, operators: list[OperatorDiagnosis]) -> str:
    if not observation.finished and not observation.entered:
        return "idle: nothing arrives" if not observation.queued else "nothing was finished lately"
    late_s = observation.latency_mean_s
    if late_s > rules.FULL_S and late_s > 2 * sum(one.latency_s for one in operators):
        return f"catches up: latency {_time(late_s)}, and the queues are short again"
    begin = f"keeps up: latency {_time(late_s)}"
    slowest = max(operators, key=lambda one: one.latency_s, default=None)
    if slowest is None or not slowest.latency_s:
        return begin
    return f"{begin}, most of it at {slowest.operator} ({_time(slowest.wait_s)} waiting + {_time(slowest.service_s)} service)"


def _per_second(count: int, observation: Observation) -> float:
    return count / observation.seconds if observation.seconds else 0.0


def _time(seconds: float) -> str:
    if seconds < 1.0:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class Verdicts:
    """Verdicts of all intervals of a run, for its report."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._held_s: dict[str, float] = {}
        self._words: dict[str, tuple[float, str]] = {}
        """Per bottleneck, the verdict of the interval in which tuples waited longest."""

    def add(self, observation: Observation, decisions: Iterable[Decision] = ()) -> None:
        diagnosis, seconds = diagnose(observation, decisions), observation.seconds
        self._seconds += seconds
        name = diagnosis.bottleneck
        if name is not None:
            self._held_s[name] = self._held_s.get(name, 0.0) + seconds
            wait_s = diagnosis.operators[name].wait_s
            if name not in self._words or wait_s >= self._words[name][0]:
                self._words[name] = wait_s, diagnosis.verdict

    def summary(self) -> str:
        """The run in one line; empty if nothing was observed."""
        held_s, name = max(((held_s, name) for name, held_s in self._held_s.items()), default=(0.0, ""))
        if not self._seconds or held_s < MIN_SHARE * self._seconds:
            return "none, the operators kept up" if self._seconds else ""
        _, _, worst = self._words[name][1].partition(": ")
        return f"{name} for {held_s:.0f} of {self._seconds:.0f} s; at the worst {worst}"
