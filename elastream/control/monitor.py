"""Monitor: cut time into intervals of `td` and look at the plant at the end of each."""

from elastream.control.observation import Observation
from elastream.control.plant import Plant


class Monitor:
    """Says when an interval is over, and what was seen in it."""

    def __init__(self, plant: Plant, td_s: float) -> None:
        self._plant = plant
        self._td_s = td_s
        self._began_s: float | None = None
        self._begins_s = 0.0

    def begin_again(self, at_s: float) -> None:
        """The plant stands still until then: that is in no observation, and the next interval begins after it."""
        self._began_s, self._begins_s = None, at_s

    @property
    def due_s(self) -> float:
        """When the interval that goes on ends."""
        return self._begins_s if self._began_s is None else self._began_s + self._td_s

    def look(self, now_s: float) -> Observation | None:
        """The observation of the interval that has just ended; None while it goes on."""
        if now_s < self.due_s:
            return None
        if self._began_s is None:
            self._began_s = now_s
            self._plant.observe()
            return None
        # A late look does not make the next interval shorter: what was seen covers all of the time since the last.
        self._began_s = now_s
        return self._plant.observe()
