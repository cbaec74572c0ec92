"""Guards of containers: the fewest and the most of each level, and what all together may cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from elastream.control.guard import Draft, Subject, Verdict
from elastream.errors import SettingError
from elastream.fleet import Level

EXACT = 1e-9
"""Sums of money are not exact."""


@dataclass(frozen=True)
class Prices:
    """Of one container per hour, in whatever money."""

    seat: float = 0.0
    host: float = 0.0
    executor: float = 0.0

    def __post_init__(self) -> None:
        for level in Level:
            if not 0 <= self.of(level) < float("inf"):
                raise SettingError(f"guards: the price of a {level.value} must be 0 or more, got {self.of(level)}")

    def of(self, level: Level) -> float:
        price: float = getattr(self, level.value)
        return price

    def per_hour(self, counts: Mapping[Subject, int]) -> float:
        """What so many containers cost. Seats are counted per host."""
        hosts = counts.get(Level.HOST, 0)
        seats = counts.get(Level.SEAT, 0) * hosts
        return self.seat * seats + self.host * hosts + self.executor * counts.get(Level.EXECUTOR, 0)


@dataclass(frozen=True)
class LevelLimits:
    """The least and the most of levels, by the user and by what can be had."""

    bounds: Mapping[Level, tuple[int, int]]

    def judge(self, draft: Draft) -> Iterator[Verdict]:
        for state in draft.observation.fleet:
            level, size = state.level, draft.after[state.level]
            least, most = self.bounds.get(level, (1, state.most))
            allowed = min(max(size, least), most)
            if allowed != size:
                yield Verdict(level, allowed, f"limits: {least}..{level.count(most)}")
            if allowed > max(state.most, draft.before[level]):
                there = max(state.most, draft.before[level])
                yield Verdict(level, there, f"no more than {level.count(state.most)} can be had")


@dataclass(frozen=True)
class Money:
    """Nothing grows that would cost more than allowed, the dearest containers least. What runs already stays."""

    prices: Prices
    per_hour: float

    def judge(self, draft: Draft) -> Iterator[Verdict]:
        after = dict(draft.after)
        for level in reversed(Level):
            wanted = after.get(level, 0)
            while (
                after.get(level, 0) > draft.before.get(level, 0)
                and self.prices.of(level)
                and self.prices.per_hour(after) > self.per_hour + EXACT
            ):
                after[level] -= 1
            if level in after and after[level] != wanted:
                asked = self.prices.per_hour({**after, level: wanted})
                yield Verdict(
                    level,
                    after[level],
                    f"money: {level.count(wanted)} would make it {asked:.2f} an hour, {self.per_hour:.2f} is allowed",
                )
