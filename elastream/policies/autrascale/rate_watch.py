"""The input rate for which sizes are sought: it changes when what arrives has left it for good, or queues feel it."""

from elastream.policies.autrascale.models import distance

SAME = 0.1
"""Rates that are no further apart have one model."""


class RateWatch:
    """Says when the rate is another one. With a fixed rate it never is."""

    def __init__(self, fixed_per_s: float = 0.0) -> None:
        self._fixed_per_s = fixed_per_s
        self.per_second = 0.0
        self._apart: list[float] = []

    def look(self, per_second: float, growing: bool) -> bool:
        """True when sizes must be sought anew: at first, and when two intervals in a row are apart on the same side.

        One is enough while queues grow.
        """
        if self._fixed_per_s:
            began, self.per_second = not self.per_second, self._fixed_per_s
            return began
        if per_second <= 0 or (self.per_second and distance(per_second, self.per_second) <= SAME):
            self._apart = []
            return False
        if self._apart and (self._apart[-1] > self.per_second) != (per_second > self.per_second):
            self._apart = []
        self._apart.append(per_second)
        if self.per_second and len(self._apart) < 2 and not (growing and per_second > self.per_second):
            return False
        self.per_second = sum(self._apart) / len(self._apart)
        self._apart = []
        return True
