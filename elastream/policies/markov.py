"""Markov: the predictive part of Hidalgo and others (2017): a chain over the states of an operator's load.

Every interval an operator is underloaded, stable or overloaded. From the changes seen lately a transition matrix is made; the
state that the chain is most likely to be in after `ahead` intervals decides, before the load is there.
"""

from collections import deque

import numpy as np

from elastream.control import Observation, Proposal, Want
from elastream.errors import SettingError
from elastream.policies.threshold import utilisation

STATES = ("underloaded", "stable", "overloaded")


class Markov:
    """One replica more when overload is the likeliest state to come, one less when underload is."""

    name = "markov"
    start = None

    def __init__(self, high: float = 0.8, low: float = 0.4, history: int = 60, ahead: int = 2) -> None:
        if not 0 <= low < high:
            raise SettingError(f"policy 'markov': low must be 0 or more and less than high, got {low} and {high}")
        if history < 2 or ahead < 1:
            raise SettingError(f"policy 'markov': history from 2 and ahead from 1, got {history} and {ahead}")
        self._high, self._low, self._history, self._ahead = high, low, history, ahead
        self._seen: dict[str, deque[int]] = {}

    def propose(self, observation: Observation) -> Proposal:
        wants = []
        for operator in observation.scalable():
            rho = utilisation(operator, observation.seconds)
            if rho is None:
                continue
            state = 2 if rho > self._high else 0 if rho < self._low else 1
            seen = self._seen.setdefault(operator.operator, deque(maxlen=self._history))
            seen.append(state)
            ahead = forecast(seen, self._ahead)
            likeliest = int(np.argmax(ahead))
            size = max(1, operator.replicas + likeliest - 1)
            reason = (
                f"{STATES[state]} now (utilisation {rho:.2f}), {STATES[likeliest]} in {self._ahead} intervals with "
                f"probability {ahead[likeliest]:.2f}"
            )
            wants.append(Want(operator.operator, size, reason))
        return Proposal(tuple(wants))


def forecast(states: deque[int], ahead: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """The probability of each state after `ahead` steps from the last one, by the steps seen so far.

    A state that was never left stays: that is all that is known of it.
    """
    steps = np.zeros((3, 3))
    seen = list(states)
    np.add.at(steps, (seen[:-1], seen[1:]), 1.0)
    unseen = steps.sum(axis=1) == 0
    steps[unseen] = np.eye(3)[unseen]
    chain = steps / steps.sum(axis=1, keepdims=True)
    now = np.zeros(3)
    now[seen[-1]] = 1.0
    return np.asarray(now @ np.linalg.matrix_power(chain, ahead))
