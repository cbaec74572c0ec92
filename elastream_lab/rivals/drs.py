"""DRS: auto-scaling for real-time stream analytics (Fu and others, ToN 2017): a Jackson open queueing network, and a greedy.

Every operator is an M/M/k queue; visit ratios say how often a tuple of the input reaches each. From the fewest replicas with
which no queue grows for ever, one replica at a time goes where it shortens the expected sojourn of a tuple the most, until
that meets the target. AuTraScale measures it with true and with observed rates: `observed=1` takes what a replica served per
second, busy or not.
"""

from dataclasses import dataclass
from math import floor, inf

from elastream.control import Observation, OperatorObservation, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream.policies.autrascale.sight import Eyes
from elastream.policies.autrascale.true_rates import true_per_s
from elastream.policies.flow import Flow


@dataclass(frozen=True)
class Station:
    """One operator of the network."""

    name: str
    arrives_per_s: float
    serves_per_s: float
    """One replica."""
    least: int
    most: int


class Drs(Policy):
    """The fewest replicas whose expected sojourn meets the target, as far as the model is right."""

    targets = ("latency_ms",)

    def __init__(self, latency_ms: float = 300.0, observed: int = 0) -> None:
        if not 0 < latency_ms < inf:
            raise SettingError(f"policy 'drs': latency_ms must be more than 0, got {latency_ms:g}")
        if observed not in (0, 1):
            raise SettingError(f"policy 'drs': observed must be 0 (true rates) or 1 (observed rates), got {observed}")
        self.name = f"drs:latency_ms={latency_ms:g}" + (",observed=1" if observed else "")
        self._latency_s = latency_ms / 1e3
        self._rate = observed_per_s if observed else _true_per_s
        self._flow = Flow()
        self._eyes = Eyes()

    def propose(self, observation: Observation) -> Proposal:
        if not observation.seconds:
            return Proposal()
        operators = list(observation.scalable())
        input_per_s = self._eyes.see(observation).interval.per_second
        thetas = self._flow.thetas(observation)
        stations = [
            Station(o.operator, input_per_s * thetas[o.operator], self._rate(o, observation.seconds), o.least, o.most)
            for o in operators
        ]
        stations = [station for station in stations if station.serves_per_s > 0]
        if not stations or not input_per_s:
            return Proposal()
        sizes = allocate(stations, input_per_s, self._latency_s)
        now: dict[str, int] = {o.operator: o.replicas for o in operators}
        met = observation.finished > 0 and observation.latency_mean_s <= self._latency_s
        if met and sum(sizes.values()) >= sum(now[name] for name in sizes):
            reason = f"{observation.latency_mean_s * 1e3:.0f} ms are measured, and the model knows nothing smaller"
            return Proposal(tuple(Want(name, now[name], reason) for name in sizes))
        expected_s = expected_sojourn_s(stations, sizes, input_per_s)
        wants = []
        for station in stations:
            reason = (
                f"{station.arrives_per_s:.4g}/s arrive, a replica serves {station.serves_per_s:.4g}/s; "
                f"a tuple of the input stays {expected_s * 1e3:.0f} ms of {self._latency_s * 1e3:.0f}"
            )
            wants.append(Want(station.name, sizes[station.name], reason))
        return Proposal(tuple(wants))


def allocate(stations: list[Station], input_per_s: float, latency_s: float) -> dict[str, int]:
    """The greedy of DRS: sizes that meet the latency, or all that may be had."""
    sizes: dict[str, int] = {}
    for station in stations:
        stable = floor(round(station.arrives_per_s / station.serves_per_s, 9)) + 1
        sizes[station.name] = min(max(stable, station.least), station.most)
    stays: dict[str, float] = {s.name: sojourn_s(s, sizes[s.name]) for s in stations}
    gains: dict[str, float] = {s.name: _gain(s, sizes[s.name], stays[s.name]) for s in stations}
    of: dict[str, Station] = {station.name: station for station in stations}
    while sum(of[name].arrives_per_s * stay_s for name, stay_s in stays.items()) / input_per_s > latency_s:
        name = max(gains, key=lambda name: gains[name])
        if gains[name] <= 0:
            break
        sizes[name] += 1
        stays[name] = sojourn_s(of[name], sizes[name])
        gains[name] = _gain(of[name], sizes[name], stays[name])
    return sizes


def expected_sojourn_s(stations: list[Station], sizes: dict[str, int], input_per_s: float) -> float:
    """How long a tuple of the input stays in the network, with all that comes of it."""
    return sum(s.arrives_per_s * sojourn_s(s, sizes[s.name]) for s in stations if s.arrives_per_s) / input_per_s


def sojourn_s(station: Station, replicas: int) -> float:
    """Mean time in an M/M/k queue: Erlang's probability to wait, times the wait, and the service; infinite when it grows."""
    load = station.arrives_per_s / station.serves_per_s
    if not station.arrives_per_s:
        return 0.0
    if replicas <= load:
        return inf
    # Erlang B by its recursion, which does not overflow; C from it.
    blocked = 1.0
    for servers in range(1, replicas + 1):
        blocked = load * blocked / (servers + load * blocked)
    waits = blocked / (1 - (load / replicas) * (1 - blocked))
    return waits / (replicas * station.serves_per_s - station.arrives_per_s) + 1 / station.serves_per_s


def observed_per_s(operator: OperatorObservation, seconds: float) -> float:
    """Tuples that a replica served per second of the interval, waiting included."""
    return operator.processed / (operator.replicas * seconds) if operator.replicas else 0.0


def _true_per_s(operator: OperatorObservation, seconds: float) -> float:
    return true_per_s(operator)


def _gain(station: Station, size: int, stays_s: float) -> float:
    """How much one replica more shortens what all tuples of an operator stay; 0 when there is none to be had."""
    if size >= station.most or not station.arrives_per_s:
        return 0.0
    with_one_more_s = sojourn_s(station, size + 1)
    if stays_s == inf:
        return inf if size + 1 <= station.most else 0.0
    return station.arrives_per_s * (stays_s - with_one_more_s)
