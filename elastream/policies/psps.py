"""PSPS: predictive replication of operators (Wladdimiro, Arantes, Sens, Hidalgo, SBAC-PAD 2022), equations 1 to 4.

Every operator should serve, in the next interval, what will arrive and what waits now. The two parameters repeat what the authors'
program does, and Storm's metrics do, differently from that (docs/reproduction.md).
"""

import math

from elastream.control import Observation, OperatorObservation, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream.policies.flow import Flow


class Psps(Policy):
    """From the first operator to the last, as many replicas as the predicted tuples take time."""

    name = "psps"

    def __init__(self, growth: int = 0, measured: float = 1.0) -> None:
        """`growth=1`: count only by how much a queue grew in the interval, as the program that was published after the paper does.

        `measured`: which part of a tuple's time the service time is that is known. Storm measures the operator's own function.
        """
        if growth not in (0, 1):
            raise SettingError(f"policy 'psps': growth must be 0 or 1, got {growth}")
        if not 0 < measured <= 1:
            raise SettingError(f"policy 'psps': measured must be more than 0 and at most 1, got {measured}")
        self._growth = bool(growth)
        self._measured = measured
        self._flow = Flow()

    def propose(self, observation: Observation) -> Proposal:
        td_s = observation.seconds
        if not td_s:
            return Proposal()
        thetas, came = self._flow.thetas(observation), observation.input
        wants = []
        for operator in observation.scalable():
            # Nobody has served a tuple of it yet, so nothing is known of its size.
            if not operator.service_seconds:
                continue
            arriving = whole(came * thetas[operator.operator])  # (2a)
            waiting = self._waiting(observation, operator)  # (3)
            predicted = arriving + waiting  # (4)
            need = predicted * operator.service_seconds * self._measured / td_s  # (1)
            wants.append(Want(operator.operator, max(1, whole(need)), _reason(operator, arriving, waiting, td_s), need))
        return Proposal(tuple(wants))

    def _waiting(self, observation: Observation, operator: OperatorObservation) -> float:
        if self._growth:
            return max(0, operator.received - operator.processed - operator.dropped)
        return operator.queued + self._unread(observation, operator)

    def _unread(self, observation: Observation, operator: OperatorObservation) -> float:
        """Tuples that are due and still outside: they wait in front of the first operators."""
        sources = [observation.operators[name] for name in operator.received_from]
        return sum(
            source.queued * self._flow.share(observation, source.operator, operator.operator)
            for source in sources
            if source.role == "source"
        )


def whole(need: float) -> int:
    """Rounded up; a need that is a whole number but for the last bits of a float is that number."""
    return math.ceil(round(need, 9))


def _reason(operator: OperatorObservation, arriving: int, waiting: float, td_s: float) -> str:
    return (
        f"{arriving} will arrive and {waiting:.0f} wait, {operator.service_seconds * 1e3:.3g} ms each, in {td_s:.1f} s"
    )
