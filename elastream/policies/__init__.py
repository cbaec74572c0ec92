"""One policy per file or folder. `make_policy("psps")` finds one by its name, `make_policy("mine.py:Mine")` in a file."""

from elastream.policies.make import POLICIES, check_policy, make_policy, parse_policy, policy_names
from elastream.policies.targets import with_latency, with_targets

__all__ = [
    "POLICIES",
    "check_policy",
    "make_policy",
    "parse_policy",
    "policy_names",
    "with_latency",
    "with_targets",
]
