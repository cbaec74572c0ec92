"""Guards dispose: limits on what any policy may do, as settings of a run, and the list of guards made of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from elastream.codec import convert
from elastream.control.guard import Guard
from elastream.control.level_guards import LevelLimits, Money, Prices
from elastream.control.replica_guards import Cooldown, LargestStep, OwnLimits, Slack, Slots
from elastream.control.time_guards import Disruptions, DryRun, Window
from elastream.errors import SettingError
from elastream.field_docs import explained
from elastream.fleet import Level

Bounds = tuple[int, int]
"""The least and the most."""


@explained
@dataclass(frozen=True)
class Guards:
    """Limits on what any policy may do. Every operator's own (min, max) always holds."""

    slots: int | None = None
    """The most replicas of all operators that do not wait, together; None: as many as tasks can run at once."""

    cooldown_s: float = 0.0
    """An operator that was rescaled stays as it is for this long."""

    largest_step: int | None = None
    """The most replicas that are added to or taken from an operator at once; None: any number."""

    slack: float = 0.1
    """Before an operator shrinks, its need must be this share below the smaller size: no to and fro on a constant rate."""

    dry_run: bool = False
    """Only advise: decisions are written down, none is carried out."""

    seats: Bounds | None = None
    """The fewest and the most threads of a host; None: any number."""

    hosts: Bounds | None = None
    """The fewest and the most processes; None: any number."""

    executors: Bounds | None = None
    """The fewest and the most machines; None: any number."""

    prices: Prices = field(default_factory=Prices)
    """Of a container per hour."""

    money_per_hour: float | None = None
    """All containers together may cost no more; None: any sum."""

    windows: tuple[Window, ...] = ()
    """Times of the day at which a level or an operator has limits of its own."""

    disruptions: Disruptions | None = None
    """So many changes in so much time; None: any number."""

    def __post_init__(self) -> None:
        if self.slots is not None and self.slots < 1:
            raise SettingError(f"guards: slots must be 1 or more, got {self.slots}; None means as many as there are")
        if not 0 <= self.cooldown_s < float("inf"):
            raise SettingError(f"guards: cooldown_s must be 0 or more, got {self.cooldown_s}")
        if self.largest_step is not None and self.largest_step < 1:
            raise SettingError(f"guards: largest_step must be 1 or more, got {self.largest_step}; None means any")
        if not 0 <= self.slack < 1:
            raise SettingError(f"guards: slack must be from 0 to less than 1, got {self.slack}")
        for name in ("seats", "hosts", "executors"):
            bounds = getattr(self, name)
            if bounds is not None and not (len(bounds) == 2 and 1 <= bounds[0] <= bounds[1]):
                raise SettingError(f"guards: {name} must be (least, most) with 1 <= least <= most, got {bounds!r}")
        if self.money_per_hour is not None and not 0 <= self.money_per_hour < float("inf"):
            raise SettingError(f"guards: money_per_hour must be 0 or more, got {self.money_per_hour}; None means any")

    def all(self) -> tuple[Guard, ...]:
        """The guards, in the order in which they look at a proposal. Hard limits come last: nothing may loosen them."""
        bounds: dict[Level, Bounds] = {
            level: limits
            for level, limits in ((Level.SEAT, self.seats), (Level.HOST, self.hosts), (Level.EXECUTOR, self.executors))
            if limits is not None
        }
        found: list[Guard] = [OwnLimits()]
        found += [Slack(self.slack)] if self.slack else []
        found += [LargestStep(self.largest_step)] if self.largest_step is not None else []
        found += [Cooldown(self.cooldown_s)] if self.cooldown_s else []
        found += self.windows
        found += [LevelLimits(bounds)]
        found += [Money(self.prices, self.money_per_hour)] if self.money_per_hour is not None else []
        found += [Slots(self.slots)] if self.slots is not None else []
        found += [self.disruptions] if self.disruptions is not None else []
        found += [DryRun()] if self.dry_run else []
        return tuple(found)


def parse_guards(document: object) -> Guards:
    """From outside, a file say; unknown keys are refused."""
    return convert(document, Guards, "guards", error=SettingError, known_only=True)
