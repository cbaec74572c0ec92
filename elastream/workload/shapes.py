"""Workloads by a formula: constant, ramp, steps, sine, a day with its peaks. Rates enter, arrivals leave.

All rates are tuples per second, and `seconds` is always the length of the whole.
"""

from collections.abc import Callable, Sequence

import numpy as np

from elastream.errors import SettingError
from elastream.workload.arrivals import Arrivals, from_steps, positive
from elastream.workload.counter_hash import Floats

DAY = (34, 24, 18, 15, 14, 17, 28, 52, 86, 100, 94, 84, 78, 80, 82, 80, 82, 90, 106, 122, 128, 116, 86, 56)
"""How busy the hours of a day are, from midnight on: a peak in the morning, and a higher one in the evening."""

_MOST_PERIODS = 10_000


def constant(per_second: float, seconds: float) -> Arrivals:
    """The same rate all the time."""
    positive("per_second", per_second)
    positive("seconds", seconds)
    return Arrivals((0.0, seconds), (0.0, per_second * seconds))


def ramp(start: float, end: float, seconds: float) -> Arrivals:
    """From one rate to another, up or down, in a straight line."""
    _some("ramp", {"start": start, "end": end})
    positive("seconds", seconds)
    return _integrated(lambda t: start * t + (end - start) * t**2 / (2 * seconds), np.linspace(0, seconds, 501))


def steps(rates: Sequence[float], seconds: float) -> Arrivals:
    """One rate after the other, all for the same time; together they last `seconds`."""
    if not len(rates):
        raise SettingError("steps: rates must be one rate or more, got none")
    _some("steps", {f"rates, number {number}": rate for number, rate in enumerate(rates, 1)})
    positive("seconds", seconds)
    ends = np.linspace(0, seconds, len(rates) + 1)
    return from_steps(ends, np.asarray(rates, np.float64) * np.diff(ends))


def sine(low: float, high: float, period_s: float, seconds: float) -> Arrivals:
    """A wave between two rates that begins at the low one."""
    _some("sine", {"low": low, "high": high})
    if high < low:
        raise SettingError(f"sine: high must be low={low:g} or more, got {high}")
    positive("period_s", period_s)
    positive("seconds", seconds)
    if seconds / period_s > _MOST_PERIODS:
        raise SettingError(
            f"sine: period_s must be {seconds / _MOST_PERIODS:g} or more for seconds={seconds:g}, got {period_s}"
        )
    middle, swing, turn = (low + high) / 2, (high - low) / 2, 2 * np.pi / period_s
    ends = np.linspace(0, seconds, max(2, round(100 * seconds / period_s) + 1))
    return _integrated(lambda t: middle * t - swing * np.sin(turn * t) / turn, ends)


def daily(per_second: float, seconds: float = 86_400.0, days: int = 1, weights: Sequence[float] = DAY) -> Arrivals:
    """Days of 24 hours in `seconds`, with `per_second` as their mean rate.

    `weights` say how busy each hour is compared with the others. Each holds in the middle of its hour, and between two
    middles the rate goes straight.
    """
    positive("per_second", per_second)
    positive("seconds", seconds)
    if not isinstance(days, int) or days < 1:
        raise SettingError(f"daily: days must be a whole number from 1 on, got {days}")
    if len(weights) != 24:
        raise SettingError(f"daily: weights must be 24, one for each hour, got {len(weights)}")
    _some("daily", {f"weights, hour {hour}": weight for hour, weight in enumerate(weights)})
    # From the middle of the hour before the day to the middle of the hour after it, every six minutes.
    hours = np.arange(240 * days) / 10 + 0.05
    shape = np.interp(hours % 24, np.arange(-1, 25) + 0.5, [weights[-1], *weights, weights[0]])
    ends = np.linspace(0, seconds, len(hours) + 1)
    return from_steps(ends, shape / shape.mean() * per_second * np.diff(ends))


def formula(per_second: Callable[[Floats], Floats], seconds: float, step_s: float = 0.1) -> Arrivals:
    """A rate as a function of the second, for example `lambda t: 500 + 400 * np.sin(t / 10)`."""
    positive("seconds", seconds)
    positive("step_s", step_s)
    ends = np.append(np.arange(0.0, seconds, step_s), seconds)
    rates = np.broadcast_to(np.asarray(per_second((ends[:-1] + ends[1:]) / 2), np.float64), (len(ends) - 1,))
    if not np.all(np.isfinite(rates)) or np.any(rates < 0):
        worst = int(np.argmin(np.where(np.isfinite(rates), rates, -np.inf)))
        raise SettingError(f"rate formula: expected 0 or more per second, got {rates[worst]} at {ends[worst]:.1f} s")
    return from_steps(ends, rates * np.diff(ends))


def _integrated(counts: Callable[[Floats], Floats], ends: Floats) -> Arrivals:
    """Steps that have exactly as many tuples as the area under the rate."""
    return from_steps(ends, np.maximum(np.diff(counts(ends)), 0.0))


def _some(shape: str, rates: dict[str, float]) -> None:
    """Rates may be 0 for a time, but not all of them, or nothing would ever come."""
    for name, rate in rates.items():
        if not 0 <= rate < float("inf"):
            raise SettingError(f"{shape}: {name} must be 0 or more and finite, got {rate}")
    if not any(rates.values()):
        raise SettingError(f"{shape}: {' and '.join(rates)} must not all be 0, got nothing but zeros")
