"""Which keys tuples have: numbers of tuples enter, places in a pool of keys leave.

In normal times keys are equally popular or follow Zipf's law. While a data spike lasts, a share of the tuples goes to a few
hot keys instead. A tuple's key depends on its number and on nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from elastream.errors import SettingError
from elastream.workload.counter_hash import Floats, Numbers, fractions, shuffled
from elastream.workload.data_spikes import DataSpike


@dataclass(frozen=True)
class HotSpell:
    """A data spike on a workload: how hot it is, by numbers of tuples instead of seconds."""

    spike: DataSpike

    salt: int
    """Decides which keys are hot, and which tuples go to them."""

    popularity: tuple[float, ...]
    """Of each hot key among the hot ones; they add up to 1."""

    bounds: tuple[int, ...] = ()
    """The numbers of tuples from which on the share is another."""

    shares: tuple[float, ...] = (0.0,)
    """Before the first bound, between two, and after the last: how many of the tuples go to hot keys."""

    def share_of(self, numbers: Numbers) -> Floats:
        shares: Floats = np.asarray(self.shares)[np.searchsorted(self.bounds, numbers, side="right")]
        return shares


@dataclass(frozen=True)
class Keys:
    """How popular keys are, whatever the keys of an application are."""

    spells: tuple[HotSpell, ...] = ()
    """In the order of their onset."""

    zipf: float = 0.0
    """In normal times the r-th key has a share like 1 / r**zipf (Pareto's law, by rank); 0: all the same."""

    salt: int = 0

    def among(self, count: int) -> "KeyChoice":
        """The choice among so many keys."""
        for spell in self.spells:
            if spell.spike.hot_keys > count:
                raise SettingError(
                    f"spike at_s={spell.spike.at_s:g}: hot_keys must be from 1 to {count}, as many as there are keys, "
                    f"got {spell.spike.hot_keys}"
                )
        return KeyChoice(self, count)


EQUAL = Keys()
"""All keys the same, and none hot."""


@dataclass(frozen=True)
class KeyChoice:
    """Called with numbers of tuples, gives a place from 0 to count - 1 for each. Small, so that it travels well."""

    keys: Keys
    count: int

    def __call__(
        self, numbers: Numbers, calm: npt.NDArray[np.integer] | None = None, *, draws: Numbers | None = None
    ) -> Numbers:
        """`calm` are the places in normal times, when all keys are the same; by default they are spread at random.

        Where a tuple has several keys, its number comes several times, and `draws` are numbers that tell them apart.
        """
        draws = numbers if draws is None else draws
        places = self._normal(draws) if calm is None or self.keys.zipf else calm.astype(np.int64)
        # Where spikes overlap, the later one takes its share first.
        for spell in self.keys.spells:
            hot = fractions(draws, spell.salt) < spell.share_of(numbers)
            if hot.any():
                which = _pick(spell.popularity, fractions(draws[hot], spell.salt + 1))
                places[hot] = self.hot(spell)[which]
        return places

    def hot(self, spell: HotSpell) -> Numbers:
        """The places of a spell's hot keys, in the order of their popularity as it was drawn."""
        return _shuffled(self.count, spell.salt)[: spell.spike.hot_keys]

    def _normal(self, numbers: Numbers) -> Numbers:
        fraction = fractions(numbers, self.keys.salt)
        if not self.keys.zipf:
            return (fraction * self.count).astype(np.int64)
        ranks = np.searchsorted(_zipf(self.keys.zipf, self.count), fraction, side="right")
        return _shuffled(self.count, self.keys.salt)[ranks]


def _pick(popularity: Sequence[float], fraction: Floats) -> Numbers:
    ends = np.cumsum(popularity)
    ends[-1] = 1.0
    return np.searchsorted(ends, fraction, side="right")


@lru_cache(maxsize=8)
def _zipf(exponent: float, count: int) -> Floats:
    """Where the shares of the ranks end between 0 and 1."""
    shares = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    ends: Floats = np.cumsum(shares) / shares.sum()
    ends[-1] = 1.0
    return ends


_shuffled = lru_cache(maxsize=32)(shuffled)
