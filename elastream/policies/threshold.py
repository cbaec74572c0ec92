"""Threshold: the reactive part of Hidalgo and others (Self-adaptive processing graph with operator fission, 2017).

An operator whose utilisation, arrivals over what its replicas can serve, leaves the band gets or loses one replica.
"""

from elastream.control import Observation, OperatorObservation, Policy, Proposal, Want
from elastream.errors import SettingError


class Threshold(Policy):
    """One replica more above `high`, one less below `low`."""

    name = "threshold"

    def __init__(self, high: float = 0.8, low: float = 0.4) -> None:
        if not 0 <= low < high:
            raise SettingError(f"policy 'threshold': low must be 0 or more and less than high, got {low} and {high}")
        self._high, self._low = high, low

    def propose(self, observation: Observation) -> Proposal:
        wants = (self._want(o, utilisation(o, observation.seconds)) for o in observation.scalable())
        return Proposal(tuple(want for want in wants if want is not None))

    def _want(self, operator: OperatorObservation, rho: float | None) -> Want | None:
        if rho is None:
            return None
        if rho > self._high:
            return Want(operator.operator, operator.replicas + 1, f"utilisation {rho:.2f} above {self._high:g}")
        if rho < self._low and operator.replicas > 1:
            return Want(operator.operator, operator.replicas - 1, f"utilisation {rho:.2f} below {self._low:g}")
        return Want(operator.operator, operator.replicas, f"utilisation {rho:.2f} is in {self._low:g}..{self._high:g}")


def utilisation(operator: OperatorObservation, seconds: float) -> float | None:
    """ρ: what arrived and what waited, over what the replicas can serve in the time; None when nothing is known."""
    possible_s = operator.replicas * seconds
    if not possible_s or not operator.service_seconds:
        return None
    # What was there to serve: what was served and what still waits, however it came.
    offered = operator.processed + operator.queued
    return offered * operator.service_seconds / possible_s
