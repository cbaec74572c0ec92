"""The benefit model: mean and deviation of the score of any sizes, from a Gaussian process over latencies.

The paper's process learns scores. But the share of replicas in a score is known without any model, and the share of latency has
a bend at the target: all sizes that keep it look alike. So the process learns latencies, and the moments of the score
follow from those of the latency.
"""

from collections.abc import Sequence
from math import isinf, log

import numpy as np
from scipy.special import ndtr

from elastream.policies.autrascale.candidates import Rows
from elastream.policies.autrascale.models import BenefitModel, Sizes
from elastream.policies.autrascale.score import Goal
from elastream.policies.autrascale.surrogate import Floats, Surrogate

LONGEST, SHORTEST = 5.0, 0.02
"""Times the target: longer latencies, and those that only grow, are all alike."""
CERTAIN = 1e-6

Late = tuple[Sizes, float]
"""Sizes, and the logarithm of how many times the target they take."""


class ScoreModel:
    """Trained on latencies of sizes between `base` and `most`."""

    def __init__(self, goal: Goal, base: Sizes, most: Sizes, known: Sequence[Late]) -> None:
        self._goal, self._base = goal, np.asarray(base, np.float64)
        self._late = Surrogate(base, most, [sizes for sizes, _ in known], [late for _, late in known])

    def predict(self, rows: Rows) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the score of each.

        With x the logarithm of the latency in targets, normal with mean m and deviation s, the share of latency is
        min(1, exp(-x)); its moments are sums of a part below the target and the rest, a truncated lognormal.
        """
        m, s = self._late.predict(rows)
        s = np.maximum(s, CERTAIN)
        kept = ndtr(-m / s)
        first = kept + np.exp(np.minimum(-m + s**2 / 2, 50.0)) * ndtr((m - s**2) / s)
        second = kept + np.exp(np.minimum(-2 * m + 2 * s**2, 50.0)) * ndtr((m - 2 * s**2) / s)
        alpha = self._goal.alpha
        lean = (self._base / rows).mean(axis=1)
        return alpha * first + (1 - alpha) * lean, alpha * np.sqrt(np.maximum(second - first**2, 0.0))

    def keeps(self, rows: Rows) -> Floats:
        """The probability with which each keeps the target."""
        m, s = self._late.predict(rows)
        return np.asarray(ndtr(-m / np.maximum(s, CERTAIN)), np.float64)


def lateness(goal: Goal, model: BenefitModel) -> list[Late]:
    """Of every sample."""
    found = []
    for sample in model.samples:
        times = LONGEST if isinf(sample.latency_s) else sample.latency_s / goal.latency_s
        found.append((sample.sizes, log(min(max(times, SHORTEST), LONGEST))))
    return found
