"""The clock of a generated network: numbers of flows enter; when each happened, and in which attack, leave.

Days have the hours of `daily`, week-ends are calmer, and attacks add their flows to those of ordinary people. It is a log of a
network, and a workload says how fast the log is replayed: a flow depends on its number alone. After a week the log goes on with
the same week, seven days later.
"""

from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np

from elastream.workload.counter_hash import Floats, Numbers, fractions
from elastream.workload.shapes import DAY

FLOWS_PER_S = 5.0
"""The mean of a working day, without attacks."""
WEEKEND = 0.6
"""How busy Saturday and Sunday are, in parts of a working day."""
START_US = 1_772_438_400_000_000
"""2026-03-02, a Monday, at 8 in the morning."""
WEEK_S = 7 * 86_400
STEP_S = 10
FIRST_HOUR = 8

KINDS = ("syn-flood", "udp-flood", "amplification", "http-flood")


@dataclass(frozen=True)
class Attack:
    kind: str
    step: int
    """It begins with this step of the clock."""
    steps: int
    per_s: float
    """Flows that it adds."""


@dataclass(frozen=True, eq=False)
class Clock:
    """A week in steps of `STEP_S`."""

    attacks: tuple[Attack, ...]
    counts: Floats
    """How many flows there were when each step began, and at the end."""
    attacked: Numbers
    """Per step the place of its attack, or -1."""
    share: Floats
    """Per step, how many of its flows belong to the attack."""

    @property
    def total(self) -> int:
        return int(self.counts[-1])

    def at_us(self, numbers: Numbers) -> Numbers:
        """When these flows happened, in microseconds since 1970."""
        weeks, within = np.divmod(numbers, self.total)
        steps = np.interp(within + 0.5, self.counts, np.arange(len(self.counts)))
        return START_US + weeks * (WEEK_S * 1_000_000) + (steps * (STEP_S * 1e6)).astype(np.int64)

    def attack_of(self, numbers: Numbers, salt: int) -> Numbers:
        """The place of the attack that each flow belongs to, or -1."""
        steps = np.searchsorted(self.counts, numbers % self.total + 0.5, side="right") - 1
        return np.where(fractions(numbers, salt) < self.share[steps], self.attacked[steps], -1)

    def numbers_between(self, first_s: int, stop_s: int) -> Numbers:
        """The flows of a part of the first week, in seconds since its beginning."""
        bounds = np.array([first_s, stop_s]) * 1_000_000 + START_US
        # Where they are by the counts, and then by the times that flows are given, which are rounded.
        near = np.interp([first_s / STEP_S, stop_s / STEP_S], np.arange(len(self.counts)), self.counts)
        numbers = np.arange(max(0, int(near[0]) - 1), min(self.total, int(near[1]) + 2), dtype=np.int64)
        at_us = self.at_us(numbers)
        inside: Numbers = numbers[(at_us >= bounds[0]) & (at_us < bounds[1])]
        return inside


@lru_cache(maxsize=4)
def flow_clock(seed: int, attacks: bool) -> Clock:
    """The clock of a week with its attacks, or of one in which nobody attacks."""
    steps = WEEK_S // STEP_S
    hours = FIRST_HOUR + (np.arange(steps) + 0.5) * STEP_S / 3600
    busy = np.interp(hours % 24, np.arange(-1, 25) + 0.5, [DAY[-1], *DAY, DAY[0]]) / np.mean(DAY)
    # The week begins on a Monday.
    normal = FLOWS_PER_S * busy * np.where(hours // 24 % 7 >= 5, WEEKEND, 1.0)
    drawn = _attacks(Random(seed), steps) if attacks else ()
    attacked, added = np.full(steps, -1, np.int64), np.zeros(steps)
    for place, attack in enumerate(drawn):
        attacked[attack.step : attack.step + attack.steps] = place
        added[attack.step : attack.step + attack.steps] = attack.per_s
    counts = np.concatenate([[0.0], np.cumsum((normal + added) * STEP_S)])
    # A whole number of flows, so that the weeks follow one another.
    return Clock(drawn, counts * (np.floor(counts[-1]) / counts[-1]), attacked, added / (normal + added))


def _attacks(random: Random, steps: int) -> tuple[Attack, ...]:
    """One after another, with a quarter of an hour to an hour between two; the first is soon."""
    drawn: list[Attack] = []
    step = random.randint(3 * 6, 6 * 6)
    while True:
        length = random.randint(2 * 6, 8 * 6)
        if step + length > steps:
            return tuple(drawn)
        drawn.append(Attack(random.choice(KINDS), step, length, FLOWS_PER_S * random.uniform(0.6, 4.0)))
        step += length + random.randint(15 * 6, 60 * 6)
