"""Load ratio and load balance of replicas, hosts and machines (Dr-Stream, equations 5 and 6)."""

from collections.abc import Iterable
from dataclasses import dataclass

from elastream.control.observation import Observation, OperatorObservation
from elastream.rules import load_balance, load_ratio


@dataclass(frozen=True)
class LevelLoad:
    """The load ratios of everything at one level."""

    ratios: tuple[float, ...]

    @property
    def lb(self) -> float:
        """The mean distance from the mean; 0 is even."""
        return load_balance(self.ratios)

    @property
    def mean(self) -> float:
        return sum(self.ratios) / len(self.ratios) if self.ratios else 0.0

    @property
    def most(self) -> float:
        return max(self.ratios, default=0.0)


@dataclass(frozen=True)
class Load:
    """A run at the end of an interval. Levels that are not known have no ratios."""

    lanes: LevelLoad
    hosts: LevelLoad
    machines: LevelLoad


def lane_ratios(operator: OperatorObservation) -> list[float]:
    """Of the active replicas, in their order."""
    if not operator.length:
        return []
    return [load_ratio(lane.queued, operator.length) for lane in operator.lanes if lane.active]


def load_of(observation: Observation) -> Load:
    """A host's queue is as long as those of its replicas together, and a machine's as those of its hosts.

    Replicas that only drain count where they live: what waits there is work, too.
    """
    lanes = [ratio for operator in observation.scalable() for ratio in lane_ratios(operator)]
    queued = dict.fromkeys((host.host for host in observation.hosts), 0.0)
    length = dict(queued)
    for operator in observation.scalable():
        for lane in operator.lanes:
            if lane.host in queued and operator.length:
                queued[lane.host] += lane.queued
                length[lane.host] += operator.length
    machines: dict[str, list[int]] = {}
    for host in observation.hosts:
        machines.setdefault(host.machine, []).append(host.host)

    def together(hosts: Iterable[int]) -> float:
        some = list(hosts)
        total = sum(length[host] for host in some)
        return load_ratio(sum(queued[host] for host in some), total) if total else 0.0

    return Load(
        LevelLoad(tuple(lanes)),
        LevelLoad(tuple(together([host]) for host in queued)),
        LevelLoad(tuple(map(together, machines.values()))),
    )
