"""Expected improvement (equations 5 to 7), and the sizes that promise the most of it."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from elastream.policies.autrascale.candidates import Rows, drawn, everywhere, is_small, lines
from elastream.policies.autrascale.models import Sizes
from elastream.policies.autrascale.score_model import ScoreModel
from elastream.policies.autrascale.surrogate import Floats

ROUNDS = 2
"""Lines that are followed at most from the best that was drawn."""


@dataclass(frozen=True)
class Promise:
    """Sizes worth a try, and what the model expects of them."""

    sizes: Sizes
    mean: float
    deviation: float
    improvement: float


def expected_improvement(mean: Floats, deviation: Floats, best: float, xi: float) -> Floats:
    """EI of each point over `best`; ξ asks for that much more, and so looks further away."""
    gain = mean - best - xi  # (6)
    known = deviation <= 0
    z = np.divide(gain, deviation, out=np.zeros_like(gain), where=~known)  # (7)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return np.where(known, 0.0, gain * ndtr(z) + deviation * density)  # (5)


def most_promising(
    model: ScoreModel,
    base: Sizes,
    most: Sizes,
    tried: Collection[Sizes],
    around: Sizes,
    best: float,
    xi: float,
    random: np.random.Generator,
) -> Promise | None:
    """The sizes in [base, most] with the largest expected improvement, but for those that were tried; None when all were.

    A space that is too large to look at is drawn from. From the best of these and of the lines through `around`, lines are
    followed: one operator at a time gets the size that promises the most.
    """
    if is_small(base, most):
        return _best(model, everywhere(base, most), tried, best, xi)
    first = np.concatenate([drawn(base, most, random), lines(around, base, most)])
    chosen = _best(model, first, tried, best, xi)
    for _ in range(ROUNDS):
        if chosen is None:
            break
        higher = _best(model, lines(chosen.sizes, base, most), tried, best, xi)
        if higher is None or higher.improvement <= chosen.improvement:
            break
        chosen = higher
    return chosen


def _best(model: ScoreModel, rows: Rows, tried: Collection[Sizes], best: float, xi: float) -> Promise | None:
    mean, deviation = model.predict(rows)
    promised = expected_improvement(mean, deviation, best, xi)
    while True:
        place = int(np.argmax(promised))
        if promised[place] == -np.inf:
            return None
        sizes = tuple(rows[place].tolist())
        if sizes not in tried:
            return Promise(sizes, float(mean[place]), float(deviation[place]), float(promised[place]))
        promised[place] = -np.inf
