"""Expected improvement (equations 5 to 7), and the sizes that promise the most of it."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from scipy.special import ndtr

from elastream.policies.autrascale.models import Sizes
from elastream.policies.autrascale.surrogate import Floats, Surrogate

ALL = 4096
"""A space with no more configurations than this is searched whole."""
DRAWN = 2048
ROUNDS = 20


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
    model: Surrogate,
    base: Sizes,
    most: Sizes,
    tried: Collection[Sizes],
    best: float,
    xi: float,
    random: np.random.Generator,
) -> Promise | None:
    """The sizes in [base, most] with the largest expected improvement, but for those that were tried; None when all were.

    A space that is too large to look at is drawn from, and climbed from the best that was drawn, an operator by a replica at a
    time.
    """
    if prod(top - least + 1 for least, top in zip(base, most, strict=True)) <= ALL:
        everywhere = product(*(range(least, top + 1) for least, top in zip(base, most, strict=True)))
        return _best(model, [sizes for sizes in everywhere if sizes not in tried], best, xi)
    drawn = random.integers(base, np.asarray(most) + 1, size=(DRAWN, len(base)))
    near = {neighbour for sizes in tried for neighbour in _neighbours(sizes, base, most)}
    chosen = _best(model, sorted({*map(tuple, drawn.tolist()), *near} - set(tried)), best, xi)
    for _ in range(ROUNDS):
        if chosen is None:
            break
        higher = _best(model, [s for s in _neighbours(chosen.sizes, base, most) if s not in tried], best, xi)
        if higher is None or higher.improvement <= chosen.improvement:
            break
        chosen = higher
    return chosen


def _best(model: Surrogate, candidates: list[Sizes], best: float, xi: float) -> Promise | None:
    if not candidates:
        return None
    mean, deviation = model.predict(candidates)
    promised = expected_improvement(mean, deviation, best, xi)
    place = int(np.argmax(promised))
    return Promise(candidates[place], float(mean[place]), float(deviation[place]), float(promised[place]))


def _neighbours(sizes: Sizes, base: Sizes, most: Sizes) -> list[Sizes]:
    return [
        (*sizes[:place], size + step, *sizes[place + 1 :])
        for place, size in enumerate(sizes)
        for step in (-1, 1)
        if base[place] <= size + step <= most[place]
    ]
