"""Dr-Stream: instances on the hosts with most room, tuples to the instances with most room (Sun and others, 2020), algorithm 3.

That tuples are redirected is what the grouping `redirection` does; this policy says so, places replicas, and adds some.
"""

import math
from collections.abc import Iterator

from elastream.control import Home, Observation, Policy, Proposal, Want, load_of
from elastream.control.load import LevelLoad, lane_ratios
from elastream.errors import SettingError
from elastream.policies.first_fit import Hosts, difference

Lane = tuple[str, int]

BUSY = 0.8
"""Instances are added to operators whose instances work for this part of the time, on the average. Others are not the limit: they
wait for an operator before them, or for a hot key, and more of them would wait, too."""


class DrStream(Policy):
    """`latency_ms` is l_max and `per_second` T_min of the paper; 0: nine tenths of what enters."""

    name = "dr-stream"
    targets = ("latency_ms",)

    def __init__(
        self,
        lb_max: float = 0.3,
        lr_max: float = 0.99,
        latency_ms: float = 1000.0,
        per_second: float = 0.0,
        p_ins: float = 40.0,
    ) -> None:
        if not latency_ms > 0:
            raise SettingError(f"policy 'dr-stream': latency_ms must be more than 0, got {latency_ms:g}")
        if min(lb_max, lr_max, per_second, p_ins) < 0:
            raise SettingError("policy 'dr-stream': lb_max, lr_max, per_second and p_ins must be 0 or more")
        self._lb_max = lb_max
        self._lr_max = lr_max
        self._latency_s = latency_ms / 1e3
        self._per_s = per_second
        self._more = p_ins / 100
        self._cores: dict[str, float] = {}
        """Cores that an instance of each operator needs, as it was seen last."""
        self._there: frozenset[int] = frozenset()
        """Hosts that were there when it looked last; none before it has deployed."""
        self._given: dict[Lane, int] = {}
        """Where each instance was put. One that has had nothing to do yet lives there, though no host has seen it."""

    def propose(self, observation: Observation) -> Proposal:
        self._learn(observation)
        wants = list(self._grown(observation)) if observation.seconds else []
        homes = self._homes(observation, wants) if observation.hosts else ()
        named = {want.operator for want in wants}
        wants += [want for want in self._redirected(observation) if want.operator not in named]
        return Proposal(tuple(wants), homes=homes)

    def _homes(self, observation: Observation, wants: list[Want]) -> tuple[Home, ...]:
        """All replicas at first, or those that an other placement has elsewhere; then those that are new or have no host.

        There is another placement when a host has come, and when tuples are late.
        """
        lives = {
            (o.operator, lane.lane): lane.host if lane.host >= 0 else self._given.get((o.operator, lane.lane), -1)
            for o in observation.scalable()
            for lane in o.lanes
            if lane.active
        }
        homes: dict[Lane, Home] = {}
        late_s = observation.latency_mean_s
        alive = frozenset(host.host for host in observation.hosts)
        before, self._there = self._there, alive
        if not before:
            homes = self._deploy(observation, lives, "first fit")
        elif alive - before:
            homes = self._deploy(observation, lives, "a host has come: first fit anew")
        elif late_s > self._latency_s:
            why = f"latency {late_s * 1e3:.0f} ms is above {self._latency_s * 1e3:.0f}: first fit anew"
            homes = self._deploy(observation, lives, why)
        lives |= {lane: home.host for lane, home in homes.items()}
        new = {
            (want.operator, number): "a new instance"
            for want in wants
            for number in range(observation.operators[want.operator].replicas, want.replicas)
        }
        new |= {lane: "its host is gone" for lane, host in lives.items() if host not in alive}
        homes |= self._fit(observation, lives, new)
        self._given |= {lane: home.host for lane, home in homes.items()}
        return tuple(homes.values())

    def _learn(self, observation: Observation) -> None:
        for operator in observation.scalable():
            if observation.seconds and operator.processed and operator.replicas:
                cpu_s = operator.busy_seconds * operator.cpu_share
                self._cores[operator.operator] = cpu_s / observation.seconds / operator.replicas

    def _needs(self, observation: Observation, operator: str) -> float:
        """The cores of an instance; one that was never seen at work counts as an even part of all cores."""
        even = sum(host.cores for host in observation.hosts) / max(1, sum(o.replicas for o in observation.scalable()))
        return self._cores.get(operator, even)

    def _deploy(self, observation: Observation, lives: dict[Lane, int], reason: str) -> dict[Lane, Home]:
        """All instances anew, in topological order; only the difference moves (steps 8 to 15, 29 to 33)."""
        hosts = Hosts(observation.hosts, {host.host: host.cores for host in observation.hosts})
        found: dict[Lane, Home] = {}
        for operator in observation.scalable():
            name, cores = operator.operator, self._needs(observation, operator.operator)
            wanted = [hosts.put(name, cores) for _ in range(operator.replicas)]
            mine = {number: lives.get((name, number), -1) for number in range(operator.replicas)}
            for number, host in difference(wanted, mine).items():
                found[name, number] = Home(name, number, host, reason)
        return found

    def _fit(self, observation: Observation, lives: dict[Lane, int], new: dict[Lane, str]) -> dict[Lane, Home]:
        """Some instances, beside those that are there (steps 34 to 38)."""
        hosts = Hosts(observation.hosts, {host.host: host.free_cores for host in observation.hosts})
        for (name, _), host in lives.items():
            hosts.seen(name, host)
        found: dict[Lane, Home] = {}
        for operator in observation.scalable():
            for lane, why in new.items():
                if lane[0] == operator.operator:
                    host = hosts.put(lane[0], self._needs(observation, lane[0]))
                    found[lane] = Home(*lane, host, f"{why}: first fit")
        return found

    def _grown(self, observation: Observation) -> Iterator[Want]:
        least_per_s = self._per_s or 0.9 * observation.entered / observation.seconds
        per_s = observation.finished / observation.seconds
        if per_s >= least_per_s:
            return
        for operator in observation.scalable():
            if operator.busy_seconds < BUSY * operator.replicas * observation.seconds:
                continue
            more = min(operator.most, operator.replicas + math.ceil(round(operator.replicas * self._more, 9)))
            if more > operator.replicas:
                why = f"throughput {per_s:.0f}/s is below {least_per_s:.0f}: {self._more:.0%} more instances"
                yield Want(operator.operator, more, why)

    def _redirected(self, observation: Observation) -> Iterator[Want]:
        """Operators whose load is out of range, by their own lanes or by the machines: they stay as they are (steps 17 to 28)."""
        machines = self._out_of_range(load_of(observation).machines, "of machines")
        for operator in observation.scalable():
            own = self._out_of_range(LevelLoad(tuple(lane_ratios(operator))), "of replicas")
            if own or (machines and operator.queued):
                yield Want(operator.operator, operator.replicas, f"{own or machines}: tuples are redirected")

    def _out_of_range(self, level: LevelLoad, whose: str) -> str:
        if level.lb > self._lb_max:
            return f"lb {level.lb:.2f} {whose} is above {self._lb_max:.2f}"
        if level.most > self._lr_max:
            return f"a load ratio {whose} of {level.most:.2f} is above {self._lr_max:.2f}"
        return ""
