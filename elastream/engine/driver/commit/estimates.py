"""Estimates per operator, learned from receipts: seconds per tuple, tuples out per tuple in, share of a core."""

from collections.abc import Mapping

from elastream import rules
from elastream.engine.messages import Receipt
from elastream.topology import Graph

UNKNOWN = -1.0


class Estimates:
    """Means over the newest tuples. An operator never seen has none, and is tried with a few tuples."""

    def __init__(
        self, known: dict[str, tuple[float, float]] | None = None, hints: Mapping[str, bool] | None = None
    ) -> None:
        """`hints`: per operator with lanes, True if its user says that it waits more than it computes."""
        self._hints = dict(hints or {})
        self.service_s: dict[str, float] = {name: service_s for name, (service_s, _) in (known or {}).items()}
        """Seconds of a replica that a tuple takes, with what is chained behind it."""
        self.fan_out: dict[str, float] = {name: out for name, (_, out) in (known or {}).items()}
        """Tuples that leave the chain for each one taken."""
        self.cpu_share: dict[str, float] = {}
        """The share of a replica's busy time in which it used a core."""
        self._seen: dict[str, float] = {}

    def learn(self, receipt: Receipt) -> None:
        """Take in what one chain did in one work."""
        head, taken, busy_s, cpu_s = receipt.head, 0, 0.0, 0.0
        for lane in receipt.operators:
            busy_s += lane.busy_s
            cpu_s += lane.cpu_s
            if lane.operator == head:
                taken += lane.processed + lane.failed
        if not taken:
            return
        out = sum(piece.slice.rows for piece in receipt.appended)
        seen = self._seen.get(head, 0.0)
        weight = rules.weight(taken, seen)
        self._seen[head] = seen + taken
        self.service_s[head] = _blend(self.service_s.get(head), busy_s / taken, weight)
        self.fan_out[head] = _blend(self.fan_out.get(head), out / taken, weight)
        if busy_s:
            # A thread's clock ticks in steps: what it says of a short work may be more than all of it.
            self.cpu_share[head] = _blend(self.cpu_share.get(head), min(1.0, cpu_s / busy_s), weight)

    def seed(self, service_s: dict[str, float]) -> None:
        """Service times from before the stream flows, until it has shown its own."""
        self.service_s = service_s | self.service_s

    def known(self) -> dict[str, tuple[float, float]]:
        """As the ledger keeps them."""
        return {name: (service_s, self.fan_out.get(name, 1.0)) for name, service_s in self.service_s.items()}

    def of(self, operator: str) -> float:
        """Seconds per tuple; below 0 when it was never timed."""
        return self.service_s.get(operator, UNKNOWN)

    def computes(self, operator: str) -> bool:
        """True if its replicas use a core while they are busy. The user's hint counts until it was measured."""
        share = self.cpu_share.get(operator)
        if share is None:
            return not self._hints.get(operator, False)
        return share >= rules.COMPUTING_SHARE

    def waits(self) -> dict[str, bool]:
        """Per operator with lanes: True if its replicas wait more than they compute."""
        return {operator: not self.computes(operator) for operator in self._hints}


def waiting_hints(graph: Graph) -> dict[str, bool]:
    """Per operator with lanes: True if its user says that all of its chain waits more than it computes."""
    return {o.name: all(member.waits for member in graph.chain(o.name)) for o in graph.served}


def _blend(old: float | None, new: float, weight: float) -> float:
    return new if old is None else old + weight * (new - old)
