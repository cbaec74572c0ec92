"""Elastic: a latency target enters, the fewest replicas that keep it leave; there is nothing else to tune."""

from collections import deque
from dataclasses import dataclass
from math import sqrt

from elastream.control import Observation, OperatorObservation, Proposal, Want
from elastream.errors import SettingError
from elastream.policies.flow import Flow
from elastream.policies.psps import whole

LOOKS = 4
K = 1.0
P = 5.0
G = 0.9
S = 3.0
LONG = 15.0
V = 0.02
R = 10.0
C = 16.0


@dataclass
class _Seen:
    """What is remembered of one operator."""

    wasted: float = 0.0
    price: float = 1.0
    shrunk_s: float = -1e9


class Elastic:
    start = None

    def __init__(self, latency_s: float = 1.0) -> None:
        if not 0 < latency_s < float("inf"):
            raise SettingError(f"policy 'elastic': latency_s must be more than 0, got {latency_s}")
        self.name = "elastic" if latency_s == 1.0 else f"elastic:latency_s={latency_s:g}"
        self.every_s = latency_s / LOOKS
        self._latency_s = latency_s
        self._flow = Flow()
        self._now_s = 0.0
        self._read = 0
        self._came: deque[tuple[float, float]] = deque([(0.0, 0.0)])
        self._since_s = 0.0
        self._variance = 0.0
        self._seen: dict[str, _Seen] = {}

    def propose(self, observation: Observation) -> Proposal:
        if not observation.seconds:
            return Proposal()
        self._now_s += observation.seconds
        thetas, waiting = self._flow.thetas(observation), self._flow.waiting(observation)
        self._read += observation.input
        unread = sum(o.queued for o in observation.operators.values() if o.role == "source")
        self._came.append((self._now_s, self._read + unread))
        while len(self._came) > 2 and self._came[1][0] <= self._now_s - LONG * self._latency_s:
            self._came.popleft()
        level = self._level()
        operators = [o for o in observation.scalable() if o.service_seconds]
        wants = []
        for place, operator in enumerate(operators):
            part = (place + 1) / len(operators)
            due_s = self._latency_s * (0.5 + 0.5 * part) * G
            base = level * thetas[operator.operator] * operator.service_seconds
            drain = self._drain(operator, thetas[operator.operator], waiting[operator.operator], due_s)
            wants.append(self._want(operator, base, drain, observation.seconds))
        return Proposal(tuple(wants))

    def _rate(self, since_s: float) -> float:
        """Tuples per second that came lately."""
        began_s, began = next(((t, c) for t, c in reversed(self._came) if t <= since_s + 1e-9), self._came[0])
        return (self._came[-1][1] - began) / (self._now_s - began_s)

    def _level(self) -> float:
        lately = self._rate(self._now_s - self._latency_s)
        mean = self._rate(max(self._since_s, self._now_s - LONG * self._latency_s))
        off = lately - mean
        if abs(off) > S * sqrt(self._variance) + 0.02 * mean:
            self._since_s = self._now_s - self._latency_s
            mean = lately
        self._variance += V * (min(off * off, S * S * self._variance + (0.1 * mean) ** 2) - self._variance)
        v = K * self._variance
        # h (m+h) = v
        return mean / 2 + sqrt(mean * mean / 4 + v)

    def _drain(self, operator: OperatorObservation, theta: float, waits: float, due_s: float) -> float:
        s = operator.service_seconds
        served = self._came[-1][1] * theta - waits
        drain = 0.0
        for t, c in self._came:
            left = c * theta - served
            if left > 0:
                drain = max(drain, left * s / max(t + due_s - self._now_s, self.every_s))
        return drain

    def _want(self, operator: OperatorObservation, base: float, drain: float, seconds: float) -> Want:
        seen = self._seen.setdefault(operator.operator, _Seen())
        now = self._now_s
        have = operator.replicas
        need = max(base, drain)
        why = f"{base:.2f} {drain:.2f}"
        want = max(1, min(whole(need), operator.most))
        if want > have:
            if now - seen.shrunk_s < R:
                seen.price = min(seen.price * 2, C)
            seen.shrunk_s = -1e9
            seen.wasted = 0.0
            return Want(operator.operator, want, why)
        if want == have:
            seen.wasted = max(0.0, seen.wasted - seconds)
            return Want(operator.operator, have, why)
        seen.wasted += (have - want) * seconds
        if seen.wasted > seen.price * P:
            if seen.shrunk_s > 0:
                seen.price = max(seen.price / 2, 1.0)
            seen.shrunk_s = now
            seen.wasted = 0.0
            return Want(operator.operator, want, why)
        return Want(operator.operator, have, why)
