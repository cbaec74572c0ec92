"""The interval between two decisions: as the user says, else the policy's own pace, else the default."""

from elastream.control.policy import Policy
from elastream.errors import SettingError

DEFAULT_TD_S = 5.0
"""Seconds between two decisions if neither the user nor the policy says how many."""


def checked_td(td_s: float | None) -> float | None:
    """The interval that a user set, None if there is none; one that cannot be is refused."""
    if td_s is None or _is_interval(td_s):
        return td_s
    given = f"{td_s:g}" if isinstance(td_s, int | float) else repr(td_s)
    raise SettingError(f"td_s must be more than 0, got {given}")


def interval_of(policy: Policy | None, td_s: float | None, default_s: float = DEFAULT_TD_S) -> float:
    """Seconds between two decisions. `td_s` is the user's; None: the policy's own pace, or `default_s` if it has none."""
    asked_s = checked_td(td_s)
    if asked_s is not None:
        return asked_s
    if policy is None or policy.every_s is None:
        return default_s
    if not _is_interval(policy.every_s):
        raise SettingError(f"policy {policy.name!r}: every_s must be more than 0 or None, got {policy.every_s!r}")
    return policy.every_s


def has_own_pace(policy: Policy, td_s: float | None) -> bool:
    """True if the policy chose the interval, and not the user."""
    return td_s is None and policy.every_s is not None


def _is_interval(seconds: object) -> bool:
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < float("inf")
