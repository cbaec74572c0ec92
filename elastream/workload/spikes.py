"""Spikes on any workload, by the model of Bodik and others (SoCC 2010): more tuples than usual, other keys than usual, or both.

A volume spike multiplies the normal rate by a factor that goes straight from 1 up to `magnitude`, stays, and goes back.
Where volume spikes overlap, what each of them adds to the normal rate adds up: two of magnitude 3 at once are 5 times normal.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from elastream.errors import SettingError
from elastream.workload.arrivals import Arrivals, from_steps
from elastream.workload.counter_hash import Floats
from elastream.workload.data_spikes import DataSpike, draw_popularity
from elastream.workload.keys import HotSpell, Keys
from elastream.workload.outline import Outline, expect


@dataclass(frozen=True, kw_only=True)
class VolumeSpike(Outline):
    """More tuples for some time."""

    magnitude: float
    """The rate at the peak over the normal rate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(self, "magnitude", 1 <= self.magnitude < np.inf, "1 or more, the rate at the peak over the normal rate")

    def multiplier(self, seconds: Floats) -> Floats:
        """By how much the normal rate is multiplied at these seconds."""
        height = self.height(seconds)
        # In this form exactly 1 and exactly the magnitude, in spite of rounding.
        return (1 - height) + self.magnitude * height


Spike = VolumeSpike | DataSpike


def with_spikes(arrivals: Arrivals, spikes: Iterable[Spike], seed: int = 0) -> Arrivals:
    """The workload with these spikes; their times are seconds of this workload.

    The seed decides which keys are hot in data spikes, how popular each is and which tuples go to them; volume spikes need
    none. Data spikes that the workload already has keep their seconds and their keys.
    """
    check_seed(seed)
    spikes = tuple(spikes)
    for spike in spikes:
        if spike.at_s >= arrivals.seconds:
            raise SettingError(
                f"spike at_s={spike.at_s:g}: the workload is over after {arrivals.seconds:g} s; at_s must be less, "
                "in seconds of the run after speed"
            )
    higher = _multiplied(arrivals, [spike for spike in spikes if isinstance(spike, VolumeSpike)])
    spans = [(spike.at_s, spike.at_s + spike.duration_s) for spike in spikes]
    return replace(
        higher,
        keys=_heated(higher, [spike for spike in spikes if isinstance(spike, DataSpike)], seed),
        spikes=tuple(sorted([*arrivals.spikes, *spans])),
    )


def with_popularity(arrivals: Arrivals, zipf: float, seed: int = 0) -> Arrivals:
    """The workload with keys that follow Zipf's law with this exponent in normal times; 0: all keys the same."""
    check_seed(seed)
    if not 0 <= zipf < np.inf:
        raise SettingError(f"zipf must be 0 (all keys the same) or more, got {zipf}")
    return replace(arrivals, keys=replace(arrivals.keys, zipf=zipf, salt=_salt(seed, 0)))


def check_seed(seed: int) -> None:
    if not isinstance(seed, int) or seed < 0:
        raise SettingError(f"seed must be a whole number from 0 on, got {seed!r}")


def _multiplied(arrivals: Arrivals, spikes: list[VolumeSpike]) -> Arrivals:
    """Counts are exact at the ends of steps: within one the normal rate is constant and the multiplier straight."""
    if not spikes:
        return arrivals
    cuts = np.concatenate([spike.cuts_s() for spike in spikes])
    ends = np.unique(np.concatenate([arrivals.ends_s, cuts[cuts < arrivals.seconds]]))
    # Times that differ by rounding only would make steps in which nothing can be due.
    ends = ends[np.append(True, np.diff(ends) > 1e-9 * max(1.0, arrivals.seconds))]
    ends[-1] = arrivals.seconds
    normal = np.diff(arrivals.counts_at(ends))
    middles = (ends[:-1] + ends[1:]) / 2
    factor = np.sum([spike.multiplier(middles) for spike in spikes], axis=0) - (len(spikes) - 1)
    return from_steps(ends, normal * factor, arrivals.keys)


def _heated(arrivals: Arrivals, spikes: list[DataSpike], seed: int) -> Keys:
    keys = arrivals.keys
    new = [
        HotSpell(spike, salt, draw_popularity(spike, np.random.Generator(np.random.PCG64([seed, number]))))
        for number, spike in enumerate(spikes, 1 + len(keys.spells))
        for salt in [_salt(seed, number)]
    ]
    spells = [_placed(spell, arrivals) for spell in [*keys.spells, *new]]
    return replace(keys, spells=tuple(sorted(spells, key=lambda spell: spell.spike.at_s)))


def _placed(spell: HotSpell, arrivals: Arrivals) -> HotSpell:
    """By numbers of tuples: between two cuts of the outline the share is the one in the middle."""
    cuts = spell.spike.cuts_s()
    shares = spell.spike.share * spell.spike.height((cuts[:-1] + cuts[1:]) / 2)
    return replace(
        spell,
        bounds=tuple(arrivals.due_by(float(second)) for second in cuts),
        shares=(0.0, *shares.tolist(), 0.0),
    )


def _salt(seed: int, number: int) -> int:
    """Two for each spike, which no other spike and no other seed has."""
    return (seed << 20) + 2 * number
