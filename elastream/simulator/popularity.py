"""The keys of a simulated stream: how often each comes, and the key group that it falls into."""

from copy import copy
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastream.routing.key_groups import groups_of
from elastream.simulator.state import Floats
from elastream.topology.groupings import KEY_GROUPS
from elastream.workload import Keys


class Popularity:
    """Keys by Zipf's law. Their groups are those of the engine's own hash, so that the skew of lanes is as on the engine."""

    def __init__(self, keys: int, zipf: float) -> None:
        shares = np.power(np.arange(1.0, keys + 1.0), -zipf)
        self.shares: Floats = np.divide(shares, shares.sum())
        """The part of all tuples that is of each key."""
        self._groups = groups_of(pa.record_batch({"key": np.arange(keys)}), ("key",))
        with np.errstate(divide="ignore"):
            self._misses = np.log1p(-self.shares)
        self.of_groups = added_up(self._groups, self.shares, KEY_GROUPS)
        """The same of each key group."""

    def at_times(self, keys: Keys) -> "list[tuple[float, Popularity]]":
        """From which second on keys are how popular, where data spikes make some of them hot for a while."""
        if not keys.spells:
            return []
        cuts = np.unique(np.concatenate([spell.spike.cuts_s() for spell in keys.spells]))
        choice, found = keys.among(len(self.shares)), []
        # The last cut is where the last spike is over.
        for begin, end in pairwise([*cuts.tolist(), float(cuts[-1]) + 1.0]):
            heated = copy(self)
            for spell in keys.spells:
                share = spell.spike.share * float(spell.spike.height(np.asarray([(begin + end) / 2]))[0])
                hot = added_up(self._groups[choice.hot(spell)], np.asarray(spell.popularity), KEY_GROUPS)
                heated.of_groups = (1.0 - share) * heated.of_groups + share * hot
            found.append((begin, heated))
        return found

    def distinct(self, tuples: float) -> Floats:
        """Per key group, how many keys at least one of so many tuples is of, on the average."""
        if tuples <= 0.0:
            return np.zeros(KEY_GROUPS)
        return added_up(self._groups, -np.expm1(tuples * self._misses), KEY_GROUPS)

    def direct(self, lanes: int) -> Floats:
        """The part of the tuples that each lane gets when the key is the number of a lane."""
        return added_up(np.arange(len(self.shares)) % lanes, self.shares, lanes)


def added_up(places: npt.ArrayLike, values: Floats, size: int) -> Floats:
    """Per place, the sum of the values that belong to it."""
    return np.bincount(np.asarray(places), values, size).astype(np.float64)
