"""Targets of users, a latency or an input rate to be ready for, as parameters of the policy that takes them."""

import inspect

from elastream.control import Policy
from elastream.errors import SettingError
from elastream.policies.make import PolicyWord, make_policy, parse_policy, policy_names

NAMES: dict[str, dict[str, float]] = {
    "latency_ms": {"latency_ms": 1.0, "latency_s": 1e-3},
    "per_second": {"per_second": 1.0},
}
"""Target -> the parameters that policies may have for it, and the unit of each."""


def with_targets(word: str, *, latency_ms: float | None = None, per_second: float | None = None) -> str:
    """The policy of this word with these targets, as a word: `elastic` and 300 ms give `elastic:latency_s=0.3`."""
    make_policy(word)
    for target, value in (("latency_ms", latency_ms), ("per_second", per_second)):
        if value is not None:
            word = _with_target(parse_policy(word), target, value)
    make_policy(word)
    return word


def with_latency(word: str, latency_s: float) -> str:
    """The same for a latency that the word need not take, and may say itself."""
    asked = parse_policy(word)
    key = _parameter(asked.kind, "latency_ms")
    if key is None or key in asked.keys:
        return word
    return asked.with_parameter(key, f"{latency_s * 1e3 * NAMES['latency_ms'][key]:g}")


def _with_target(asked: PolicyWord, target: str, value: float) -> str:
    key = _parameter(asked.kind, target)
    if key is None:
        others = ", ".join(name for name in policy_names() if _parameter(parse_policy(name).kind, target))
        raise SettingError(
            f"policy {asked.word!r}: has no target {target}, got {value:g}; those that have one: {others}"
        )
    if key in asked.keys:
        raise SettingError(f"policy {asked.word!r}: {target} is said twice, there and as {value:g}; leave one out")
    return asked.with_parameter(key, f"{value * NAMES[target][key]:.12g}")


def _parameter(kind: type[Policy], target: str) -> str | None:
    known = inspect.signature(kind).parameters
    return next((key for key in NAMES[target] if key in kind.targets and key in known), None)
