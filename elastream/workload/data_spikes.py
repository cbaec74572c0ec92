"""Data spikes by the model of Bodik and others (SoCC 2010): for some time a few keys are far more popular than usual.

The volume does not change. At the peak the share `share` of all tuples goes to the hot keys, the rest as in normal times. How
the hot keys share it among one another is drawn from a Dirichlet distribution.
"""

from dataclasses import dataclass

import numpy as np

from elastream.workload.outline import Outline, expect


@dataclass(frozen=True, kw_only=True)
class DataSpike(Outline):
    """Some tuples go to hot keys."""

    hot_keys: int
    """How many keys are hot."""

    share: float
    """How many of the tuples go to them at the peak: 0.5 is half of all."""

    skew: float = 0.1
    """How unequal the hot keys are: the variance of their popularity, over the greatest that it can be. 0: all the same."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(self, "hot_keys", isinstance(self.hot_keys, int) and self.hot_keys >= 1, "a whole number from 1 on")
        expect(self, "share", 0 < self.share <= 1, "more than 0 and at most 1")
        expect(self, "skew", 0 <= self.skew < 1, "from 0 to less than 1")


def draw_popularity(spike: DataSpike, random: np.random.Generator) -> tuple[float, ...]:
    """How popular each hot key is among the hot ones.

    n shares from a symmetric Dirichlet distribution with parameter a have the variance (n - 1) / n**2 / (n * a + 1). The
    greatest possible, when one key has it all, is (n - 1) / n**2; so skew = 1 / (n * a + 1) gives a.
    """
    n = spike.hot_keys
    if spike.skew == 0 or n == 1:
        return (1 / n,) * n
    return tuple(random.dirichlet([(1 / spike.skew - 1) / n] * n).tolist())
