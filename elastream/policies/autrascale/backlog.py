"""A backlog from before: it is served by larger sizes first, so that what is measured then is of the sizes that are tried.

The paper has none: its jobs begin a measurement with whatever waits. On a stream whose rate jumps, the tuples that came before the
sizes changed would be late whatever is tried, and the model would learn their lateness.
"""

TOO_MANY = 2.0
"""A backlog is what is more than arrives in so many times the latency target."""
ENOUGH = 0.5
"""It is gone when no more than this part of that waits."""
INTERVALS = 2.0
"""The time in which it is to be served."""
STUBBORN = 3
"""Intervals without progress after which it is left as it is: sizes do not help."""
PROGRESS = 0.9


class Backlog:
    """From sizes that are new to the end of what waited before them. At most once for every change of sizes."""

    def __init__(self, target_s: float) -> None:
        self._target_s = target_s
        self._is_new = False
        self._waited: list[int] = []

    def begin(self) -> None:
        """Sizes are about to change."""
        self._is_new, self._waited = True, []

    def to_serve(self, queued: int, per_second: float, seconds: float, *, arrived: bool) -> float:
        """Tuples per second to serve beyond what arrives; 0: nothing is left from before.

        `arrived`: the sizes that were wanted are there.
        """
        most = TOO_MANY * self._target_s * per_second
        if self._is_new and arrived:
            self._is_new = False
            self._waited = [queued] if queued > most else []
        elif self._waited:
            self._waited.append(queued)
        if not self._waited or queued <= ENOUGH * most or self._is_stubborn():
            self._waited = []
            return 0.0
        return queued / (INTERVALS * seconds)

    def _is_stubborn(self) -> bool:
        return len(self._waited) > STUBBORN and self._waited[-1] > PROGRESS * self._waited[-1 - STUBBORN]
