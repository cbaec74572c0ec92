"""One file per policy: an observation enters, a proposal leaves. `make_policy("psps")` finds one by its name."""

from elastream.policies.make import POLICIES, make_policy
from elastream.policies.targets import with_targets

__all__ = ["POLICIES", "make_policy", "with_targets"]
