"""The usual load: a periodic profile by hour of the week, learned from a trace or a journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, inf

import yaml

from elastream.errors import SettingError
from elastream.policies.multi_level.shipped import read_text
from elastream.yaml_text import parse_yaml

HOUR_S, DAY_S, WEEK_S = 3600.0, 86_400.0, 604_800.0
MONDAY_S = 4 * DAY_S
"""The first Monday since 1970, in UTC."""

KEYS = ("period_s", "slot_s", "begins_s", "per_second")


@dataclass(frozen=True)
class Usual:
    """Mean rates of slots of the same length that fill a period; None: nothing is known of that slot."""

    period_s: float
    slot_s: float
    begins_s: float
    """A moment at which a period begins, by the clock of observations."""
    per_second: tuple[float | None, ...]

    def at(self, second: float) -> float | None:
        """The usual rate: straight lines between the middles of slots; None in a gap."""
        place = ((second - self.begins_s) % self.period_s) / self.slot_s
        own = self.per_second[min(int(place), len(self.per_second) - 1)]
        if own is None:
            return None
        before = floor(place - 0.5)
        share = place - 0.5 - before
        left, right = (self.per_second[number % len(self.per_second)] for number in (before, before + 1))
        return own if left is None or right is None else left + share * (right - left)

    def most(self, from_s: float, to_s: float) -> float | None:
        """The highest usual rate of a stretch of time; None when it touches a gap."""
        steps = max(1, min(len(self.per_second), int((to_s - from_s) / self.slot_s * 4) + 1))
        rates = [self.at(from_s + (to_s - from_s) * step / steps) for step in range(steps + 1)]
        known = [rate for rate in rates if rate is not None]
        return max(known) if len(known) == len(rates) else None

    def to_yaml(self) -> str:
        rates = [None if rate is None else round(rate, 3) for rate in self.per_second]
        document = {"period_s": self.period_s, "slot_s": self.slot_s, "begins_s": self.begins_s, "per_second": rates}
        return yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=140)


def learn_usual(
    seen: Iterable[tuple[float, float, float]],
    *,
    period_s: float = WEEK_S,
    slot_s: float = HOUR_S,
    begins_s: float = MONDAY_S,
) -> Usual:
    """From intervals, each with its end, its length and its tuples. A slot that was never seen is a gap."""
    _check("usual load", period_s, slot_s)
    slots = round(period_s / slot_s)
    tuples, seconds = [0.0] * slots, [0.0] * slots
    for ended_s, length_s, count in seen:
        if length_s > 0:
            # By its middle: an interval is much shorter than a slot.
            place = int(((ended_s - length_s / 2 - begins_s) % period_s) / slot_s)
            tuples[min(place, slots - 1)] += count
            seconds[min(place, slots - 1)] += length_s
    rates = tuple(count / its if its else None for count, its in zip(tuples, seconds, strict=True))
    if not any(rate is not None for rate in rates):
        raise SettingError("usual load: nothing to learn from; expected a trace, or the base of a run with a policy")
    return Usual(period_s, slot_s, begins_s, rates)


def load_usual(path: str) -> Usual:
    document = parse_yaml(read_text("usual load", path, "usual"), f"usual load {path}")
    if not isinstance(document, dict) or set(document) != set(KEYS):
        raise SettingError(f"usual load {path}: expected {', '.join(KEYS)}; write one with elastream usual")
    rates, numbers = document["per_second"], [document[key] for key in KEYS[:3]]
    if not all(_is_number(number) for number in numbers):
        raise SettingError(f"usual load {path}: {', '.join(KEYS[:3])} must be seconds, got {numbers}")
    period_s, slot_s, begins_s = map(float, numbers)
    _check(f"usual load {path}", period_s, slot_s)
    if not isinstance(rates, list) or len(rates) != round(period_s / slot_s):
        raise SettingError(f"usual load {path}: per_second must have {round(period_s / slot_s)} entries, one per slot")
    for number, rate in enumerate(rates, 1):
        if rate is not None and not (_is_number(rate) and 0 <= rate < inf):
            raise SettingError(f"usual load {path}: per_second, entry {number}: expected a rate or null, got {rate!r}")
    return Usual(period_s, slot_s, begins_s, tuple(None if rate is None else float(rate) for rate in rates))


def _check(where: str, period_s: float, slot_s: float) -> None:
    slots = period_s / slot_s if slot_s > 0 else 0.0
    if not 0 < slot_s <= period_s < inf or abs(slots - round(slots)) > 1e-6:
        raise SettingError(f"{where}: period_s must be a whole number of slot_s, got {period_s:g} and {slot_s:g}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
