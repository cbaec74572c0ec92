"""The pace of ticks: their cost, the budget of works that follows from it, and pauses."""

import math

from elastream import rules
from elastream.engine.clock import Clock
from elastream.settings import Settings


class TickPace:
    """Counts ticks and their cost. A slow driver or a slow storage makes works longer, not ticks more frequent."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._tick_s = 0.0
        self.ticks = 0
        """Ticks that were made."""
        self.works = 0
        """Works that hosts were sent."""
        self.cpu_s = 0.0
        """CPU time of a tick that has something to do."""
        self.budget_s = settings.works.budget_s
        """How long a work may take."""
        self.paused_until_s = -math.inf
        """No work is sent before."""
        self._began_s = self._cpu_s = 0.0

    def pause(self, seconds: float) -> None:
        """Send no works for a while. Works under way are finished; queued tuples stay."""
        self.paused_until_s = self._clock.now() + seconds

    @property
    def is_paused(self) -> bool:
        return self._clock.now() < self.paused_until_s

    def begin(self) -> None:
        """A tick begins."""
        self._began_s, self._cpu_s = self._clock.now(), self._clock.cpu_s()

    def end(self, works: int, *, had_work: bool) -> None:
        """End a tick that sent this number of works. Only ticks that had something to do count for the cost."""
        self.ticks += 1
        self.works += works
        if had_work:
            self.cpu_s = rules.turn_cost(self.cpu_s, self._clock.cpu_s() - self._cpu_s)
            self._tick_s = rules.turn_cost(self._tick_s, self._clock.now() - self._began_s)
        self.budget_s = rules.budget(self._settings.works.budget_s, self._settings.works.max_budget_s, self._tick_s)
