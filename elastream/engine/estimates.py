"""What the driver expects of the next tick, learned from the ticks before: service times and how much comes out."""

from collections.abc import Iterable

from elastream.engine.work import OperatorReceipt

_WEIGHT = 0.3
"""How much the newest tick counts against all before it, at least: one of many tuples counts more after a few of few."""


class Estimates:
    """Moving averages per operator. An operator never seen has none, and is tried with a few tuples."""

    def __init__(self, service_s: dict[str, float] | None = None, fan_out: dict[str, float] | None = None) -> None:
        self.service_s: dict[str, float] = dict(service_s or {})
        """Seconds of a replica that a tuple takes, with what is chained behind it and with waiting for a core."""
        self.fan_out: dict[str, float] = dict(fan_out or {})
        """Tuples that leave the chain for each one taken."""
        self._seen: dict[str, float] = {}
        """Tuples of the last ticks, older ones counting less."""

    def learn(self, head: str, members: Iterable[OperatorReceipt]) -> None:
        """Take in what one chain did in one tick."""
        receipts = list(members)
        taken = sum(r.processed + r.failed for r in receipts if r.operator == head)
        if not taken:
            return
        busy_s = sum(r.busy_s for r in receipts)
        out = sum(r.given for r in receipts)
        before = self._seen.get(head, 0.0)
        weight = max(_WEIGHT, taken / (taken + before)) if before else _WEIGHT
        self._seen[head] = taken + (1 - _WEIGHT) * before
        self.service_s[head] = _blend(self.service_s.get(head), busy_s / taken, weight)
        self.fan_out[head] = _blend(self.fan_out.get(head), out / taken, weight)


def _blend(old: float | None, new: float, weight: float) -> float:
    return new if old is None else old + weight * (new - old)
