"""DABS-Storm: a data-aware approach for elastic stream processing (Kombi, Lumineau, Lamarre, Rivetti, Busnel).

The input of every operator is predicted by a regression on the last intervals; together with its pending tuples and over
the capacity of its replicas that is its activity level. A level outside the band asks for another number of replicas, and
Storm gives it by a restart: everything stops, and what is queued is lost.
"""

from collections import deque

import numpy as np

from elastream.control import Observation, OperatorObservation, Plant, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream.policies.psps import whole
from elastream_lab.rivals.restarting import RESTART_S, RestartingPlant, checked_restart


class Dabs(Policy):
    """Keeps the activity level of every operator between `low` and `high`."""

    name = "dabs"

    def __init__(self, high: float = 0.8, low: float = 0.3, window: int = 6, restart_s: float = RESTART_S) -> None:
        if not 0 <= low < high:
            raise SettingError(f"policy 'dabs': low must be 0 or more and less than high, got {low} and {high}")
        if window < 2:
            raise SettingError(f"policy 'dabs': window must be 2 intervals or more, got {window}")
        self._high, self._low, self._window = high, low, window
        self._restart_s = checked_restart(self.name, restart_s)
        self._rates: dict[str, deque[float]] = {}

    def wrap(self, plant: Plant) -> Plant:
        return RestartingPlant(plant, self._restart_s, loses=True)

    def propose(self, observation: Observation) -> Proposal:
        wants = (self._want(operator, observation.seconds) for operator in observation.scalable())
        changed = tuple(want for want in wants if want is not None)
        return Proposal(changed)

    def _want(self, operator: OperatorObservation, seconds: float) -> Want | None:
        if not seconds or not operator.service_seconds:
            return None
        rates = self._rates.setdefault(operator.operator, deque(maxlen=self._window))
        rates.append(operator.received / seconds)
        arriving = predict(rates) * seconds
        capacity = seconds / operator.service_seconds
        level = (arriving + operator.queued) / (capacity * operator.replicas)
        said = f"{arriving:.0f} predicted by regression and {operator.queued} pending: activity level {level:.2f}"
        need = (arriving + operator.queued) / (capacity * self._high)
        if level > self._high:
            return Want(operator.operator, whole(need), f"{said} above {self._high:g}", need)
        if level < self._low and operator.replicas > 1:
            return Want(operator.operator, max(1, whole(need)), f"{said} below {self._low:g}", need)
        return Want(operator.operator, operator.replicas, f"{said} is in {self._low:g}..{self._high:g}")


def predict(rates: deque[float]) -> float:
    """The next rate on the line through the last ones, never below 0."""
    if len(rates) < 2:
        return rates[-1]
    slope, start = np.polyfit(np.arange(len(rates)), np.asarray(rates), 1)
    return max(0.0, float(start + slope * len(rates)))
