"""Multi-level elasticity: the cheapest container that helps (Marangozova-Martin and others, 2019)."""

from elastream.policies.multi_level.policy import MultiLevel

__all__ = ["MultiLevel"]
