"""Orders of one level: planned, asked for and there are kept apart; late ones are asked for again, then reported."""

from collections import deque
from dataclasses import dataclass, field

from elastream.fleet.levels import Level, LevelState

LEARN = 0.3
"""How much the newest start counts against all before it."""

PATIENCE = 3.0
"""What has not come after so many times the usual is asked for again."""

LEAST_PATIENCE_S = 2.0

MOST_ASKS = 3
"""After so many the order is reported as a problem; it stays, and is asked for again now and then."""


@dataclass
class Orders:
    """Pure: a moment enters with every call, and what to do leaves. `start_s` is a guess at first."""

    level: Level
    planned: int
    most: int
    start_s: float
    there: int = 0
    measured: int = 0
    problem: str = ""
    _asked: int = 0
    _open: deque[float] = field(default_factory=deque)
    """When each that is not there yet was asked for first, the oldest first."""
    _asked_s: float = 0.0
    """When was asked last."""
    _asks: int = 0
    """How often in a row, without one coming."""

    def plan(self, count: int) -> None:
        """So many shall be there."""
        if count != self.planned:
            self.planned, self._asks, self.problem = count, 0, ""

    def due(self, now_s: float) -> int | None:
        """How many to ask for now, in all; None while nothing has to be said."""
        if self._asked != self.planned:
            self._ask(now_s)
            return self.planned
        if self.there >= self.planned or now_s - self._asked_s < self._patience_s():
            return None
        self._ask(now_s)
        return self.planned

    def saw(self, there: int, now_s: float) -> None:
        """So many are there."""
        came = there - self.there
        self.there = there
        for _ in range(min(max(0, came), len(self._open))):
            self._learn(now_s - self._open.popleft())
        if came > 0:
            self._asks = 1
        if there >= self.planned:
            self._open.clear()
            self.problem = ""

    def lost(self, now_s: float) -> None:
        """One has gone that was to stay: whoever keeps it brings another, which is as long on its way as one asked for."""
        self.there = max(0, self.there - 1)
        self._open.append(now_s)

    @property
    def state(self) -> LevelState:
        return LevelState(
            self.level, self.there, self._asked, self.planned, self.most, self.start_s, self.measured, self.problem
        )

    def _patience_s(self) -> float:
        return max(LEAST_PATIENCE_S, PATIENCE * self.start_s) * max(1, self._asks - MOST_ASKS + 1)

    def _ask(self, now_s: float) -> None:
        missing = max(0, self.planned - self.there)
        while len(self._open) > missing:
            self._open.pop()
        self._open.extend([now_s] * (missing - len(self._open)))
        self._asks = self._asks + 1 if self._asked == self.planned else 1
        if self._asks > MOST_ASKS and missing:
            waited_s = now_s - self._open[0]
            self.problem = (
                f"{self.level.count(self.planned)} asked for {self._asks - 1} times in {waited_s:.0f} s, {self.there} there; "
                "look whether the cluster has room"
            )
        self._asked, self._asked_s = self.planned, now_s

    def _learn(self, took_s: float) -> None:
        self.start_s = took_s if not self.measured else self.start_s + LEARN * (took_s - self.start_s)
        self.measured += 1
