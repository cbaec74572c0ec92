"""The trend of the load: a line through the last observations, against oscillation (section 3.1)."""

from collections import deque


class Trend:
    """The line of least squares through the last `looks` observations."""

    def __init__(self, looks: int) -> None:
        self._seen: deque[tuple[float, float]] = deque(maxlen=looks)

    def add(self, at_s: float, per_s: float) -> None:
        self._seen.append((at_s, per_s))

    @property
    def is_known(self) -> bool:
        """True when as many observations were made as the line shall go through."""
        return len(self._seen) == self._seen.maxlen

    @property
    def slope(self) -> float:
        """Tuples per second that the load grows by in a second."""
        count = len(self._seen)
        mean_s = sum(at_s for at_s, _ in self._seen) / max(1, count)
        spread = sum((at_s - mean_s) ** 2 for at_s, _ in self._seen)
        return sum((at_s - mean_s) * per_s for at_s, per_s in self._seen) / spread if spread else 0.0

    @property
    def now(self) -> float:
        """Where the line is at the newest observation."""
        if not self._seen:
            return 0.0
        count = len(self._seen)
        mean_s, mean = (sum(pair[place] for pair in self._seen) / count for place in (0, 1))
        return max(0.0, mean + self.slope * (self._seen[-1][0] - mean_s))

    @property
    def highest(self) -> float:
        return max((per_s for _, per_s in self._seen), default=0.0)
