"""Targets of users, a mean latency or an input rate to be ready for, as parameters of the policy that takes them."""

import inspect

from elastream.errors import SettingError
from elastream.policies.make import POLICIES, make_policy

NAMES: dict[str, dict[str, float]] = {
    "latency_ms": {"latency_ms": 1.0, "latency_s": 1e-3},
    "per_second": {"per_second": 1.0},
}
"""Target -> how policies name it, and the unit they have it in."""


def with_targets(word: str, *, latency_ms: float | None = None, per_second: float | None = None) -> str:
    """The policy of this word with these targets, as a word: `elastic` and 300 ms give `elastic:latency_s=0.3`."""
    make_policy(word)
    for target, value in (("latency_ms", latency_ms), ("per_second", per_second)):
        if value is not None:
            word = _with_target(word, target, value)
    make_policy(word)
    return word


def _with_target(word: str, target: str, value: float) -> str:
    name, _, rest = word.partition(":")
    key = _parameter(name, target)
    if key is None:
        others = ", ".join(policy for policy in POLICIES if _parameter(policy, target))
        raise SettingError(f"policy {word!r}: has no target {target}, got {value:g}; those that have one: {others}")
    if any(pair.partition("=")[0] == key for pair in rest.split(",")):
        raise SettingError(f"policy {word!r}: {target} is said twice, there and as {value:g}; leave one out")
    return f"{name}:{f'{rest},' if rest else ''}{key}={value * NAMES[target][key]:.12g}"


def _parameter(policy: str, target: str) -> str | None:
    known = inspect.signature(POLICIES[policy]).parameters
    return next((key for key in NAMES[target] if key in known), None)
