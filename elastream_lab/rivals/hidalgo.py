"""Hidalgo: both levels of Hidalgo and others (Self-adaptive processing graph with operator fission, 2017).

Every interval the reactive level looks at the utilisation of an operator: twice overloaded in a row is one replica more, twice
underloaded one less. Every 20th interval the predictive level makes a Markov chain of the last 100 states. Where the share of
time that the chain spends in each state is uneven enough, the state with the largest one decides five replicas more or less.
"""

from collections import deque

import numpy as np

from elastream.control import Observation, OperatorObservation, Policy, Proposal, Want
from elastream.errors import SettingError
from elastream.policies.threshold import utilisation
from elastream_lab.rivals.markov import STABLE, STATES, UNDERLOADED, state_of, stationary

SIGNS = 2
"""So many equal states in a row are a sign for the reactive level."""


class Hidalgo(Policy):
    """Small steps when the load is seen, large ones when it is to be expected."""

    name = "hidalgo"

    def __init__(
        self,
        high: float = 1.0,
        low: float = 0.5,
        every: int = 20,
        samples: int = 100,
        deviation: float = 0.25,
        step: int = 5,
    ) -> None:
        if not 0 <= low < high:
            raise SettingError(f"policy 'hidalgo': low must be 0 or more and less than high, got {low} and {high}")
        if every < 1 or samples < 2 or step < 1:
            raise SettingError(
                f"policy 'hidalgo': every and step from 1, samples from 2, got {every}, {step} and {samples}"
            )
        if not deviation >= 0:
            raise SettingError(f"policy 'hidalgo': deviation must be 0 or more, got {deviation}")
        self._high, self._low = high, low
        self._every, self._samples, self._deviation, self._step = every, samples, deviation, step
        self._seen: dict[str, deque[int]] = {}
        self._signs: dict[str, list[int]] = {}
        """The states since the reactive level changed an operator."""
        self._intervals = 0

    def propose(self, observation: Observation) -> Proposal:
        if observation.seconds:
            self._intervals += 1
        wants = (self._want(operator, observation.seconds) for operator in observation.scalable())
        return Proposal(tuple(want for want in wants if want is not None))

    def _want(self, operator: OperatorObservation, seconds: float) -> Want | None:
        rho = utilisation(operator, seconds)
        if rho is None:
            return None
        state = state_of(rho, self._low, self._high)
        self._seen.setdefault(operator.operator, deque(maxlen=self._samples)).append(state)
        signs = self._signs.setdefault(operator.operator, [])
        signs.append(state)
        predicted = self._predicted(operator) if self._intervals % self._every == 0 else None
        return predicted or self._reacted(operator, rho, signs)

    def _predicted(self, operator: OperatorObservation) -> Want | None:
        """The predictive level; None if no state stands out."""
        seen = self._seen[operator.operator]
        shares = stationary(seen)
        deviation, likeliest = float(np.std(shares)), int(np.argmax(shares))
        if deviation <= self._deviation or likeliest == STABLE:
            return None
        self._signs[operator.operator].clear()
        step = -self._step if likeliest == UNDERLOADED else self._step
        reason = (
            f"predicted from {len(seen)} samples: {STATES[likeliest]} for {shares[likeliest]:.0%} of the time, "
            f"deviation {deviation:.2f} above {self._deviation:g}"
        )
        return Want(operator.operator, max(1, operator.replicas + step), reason)

    def _reacted(self, operator: OperatorObservation, rho: float, signs: list[int]) -> Want:
        state, said = signs[-1], f"utilisation {rho:.2f}"
        if state == STABLE:
            return Want(operator.operator, operator.replicas, f"{said} is in {self._low:g}..{self._high:g}")
        limit = f"below {self._low:g}" if state == UNDERLOADED else f"above {self._high:g}"
        if signs[-SIGNS:] != [state] * SIGNS:
            return Want(operator.operator, operator.replicas, f"{said} {limit}, the first sign of two")
        signs.clear()
        step = -1 if state == UNDERLOADED else 1
        return Want(operator.operator, max(1, operator.replicas + step), f"{said} {limit}, twice in a row")
