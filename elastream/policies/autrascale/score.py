"""The benefit of a configuration (equation 4) and the score at which the search stops (equations 8 and 9)."""

from collections.abc import Sequence
from dataclasses import dataclass

from elastream.errors import SettingError


@dataclass(frozen=True)
class Goal:
    """Latency first, then few replicas: the target, and how much each of the two counts."""

    latency_s: float
    """The mean latency that shall be kept (l_t)."""
    alpha: float = 0.8
    """The share of the score that latency has; the rest is that of replicas."""
    w: float = 1.0
    """How many replicas more than the base are still fine, in parts of the base."""

    def __post_init__(self) -> None:
        if not 0 < self.latency_s < float("inf"):
            raise SettingError(f"policy 'autrascale': latency_ms must be more than 0, got {self.latency_s * 1e3:g}")
        if not 0 < self.alpha < 1:
            raise SettingError(f"policy 'autrascale': alpha must be between 0 and 1, got {self.alpha:g}")
        if not 0 <= self.w < float("inf"):
            raise SettingError(f"policy 'autrascale': w must be 0 or more, got {self.w:g}")

    @property
    def enough(self) -> float:
        """The score of a configuration that keeps the latency with at most 1 + w times the base (equation 9)."""
        return self.alpha + (1 - self.alpha) / (1 + self.w)

    def score(self, latency_s: float, sizes: Sequence[int], base: Sequence[int]) -> float:
        """F of these sizes (equation 4). A latency without bound, of queues that only grow, counts as none of its share."""
        kept = 1.0 if latency_s <= self.latency_s else self.latency_s / latency_s
        lean = sum(least / size for least, size in zip(base, sizes, strict=True)) / len(sizes)
        return self.alpha * kept + (1 - self.alpha) * lean

    def reached(self, latency_s: float, sizes: Sequence[int], base: Sequence[int]) -> bool:
        """Whether a search may stop here; the last bits of a float do not keep it from it."""
        return latency_s <= self.latency_s and self.score(latency_s, sizes, base) >= self.enough - 1e-9
