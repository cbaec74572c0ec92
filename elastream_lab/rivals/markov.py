"""Markov: the predictive part of Hidalgo and others (2017): a chain over the states of an operator's load.

Every interval an operator is underloaded, stable or overloaded. From the changes seen lately a transition matrix is made; the
state that the chain is most likely to be in after `ahead` intervals decides, before the load is there.
"""

from collections import deque

import numpy as np
import numpy.typing as npt

from elastream.control import Observation, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream.policies.threshold import utilisation

STATES = ("underloaded", "stable", "overloaded")
UNDERLOADED, STABLE, OVERLOADED = range(3)

Floats = npt.NDArray[np.float64]


class Markov(Policy):
    """One replica more when overload is the likeliest state to come, one less when underload is."""

    name = "markov"

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
            state = state_of(rho, self._low, self._high)
            seen = self._seen.setdefault(operator.operator, deque(maxlen=self._history))
            seen.append(state)
            ahead = forecast(seen, self._ahead)
            likeliest = int(np.argmax(ahead))
            size = max(1, operator.replicas + likeliest - STABLE)
            reason = (
                f"{STATES[state]} now (utilisation {rho:.2f}), {STATES[likeliest]} in {self._ahead} intervals with "
                f"probability {ahead[likeliest]:.2f}"
            )
            wants.append(Want(operator.operator, size, reason))
        return Proposal(tuple(wants))


def state_of(rho: float, low: float, high: float) -> int:
    return OVERLOADED if rho > high else UNDERLOADED if rho < low else STABLE


def forecast(states: deque[int], ahead: int) -> Floats:
    """The probability of each state after `ahead` steps from the last one, by the steps seen so far.

    A state that was never left stays: that is all that is known of it.
    """
    now = np.zeros(3)
    now[states[-1]] = 1.0
    return np.asarray(now @ np.linalg.matrix_power(_chain(states, np.eye(3)), ahead))


def stationary(states: deque[int]) -> Floats:
    """The share of time that the chain of these states spends in each of them, in the long run.

    A state that was never left, because it is the last one, goes on to the others as often as they were seen. The mean over
    many steps is taken, so that a chain that goes to and fro has shares, too.
    """
    shares = np.bincount(list(states), minlength=3) / len(states)
    power, mean = _chain(states, np.tile(shares, (3, 1))), np.eye(3)
    for _ in range(20):
        # The mean of the first 2n powers from the mean of the first n.
        mean, power = (mean + mean @ power) / 2, power @ power
    return np.asarray(shares @ mean)


def _chain(states: deque[int], unknown: Floats) -> Floats:
    """The transition matrix of the steps seen; `unknown` has the rows of states that were never left."""
    steps, seen = np.zeros((3, 3)), list(states)
    np.add.at(steps, (seen[:-1], seen[1:]), 1.0)
    never = steps.sum(axis=1) == 0
    steps[never] = unknown[never]
    return np.asarray(steps / steps.sum(axis=1, keepdims=True))
