"""The outline of a spike in time, as Bodik and others draw it (SoCC 2010): from normal up to a peak, along it, and back.

Between its four corners it is straight:

    1            peak +--------+ falls
                     /          \\
    0  ----- onset  +            +  over -----
"""

from dataclasses import dataclass

import numpy as np

from elastream.errors import SettingError
from elastream.workload.counter_hash import Floats

PIECES = 40
"""A slope is cut into so many pieces where something has to be constant within a piece."""


@dataclass(frozen=True, kw_only=True)
class Outline:
    """When a spike begins, when it is at its height, when it is over. All in seconds of the run."""

    at_s: float
    """The onset: the last moment at which all is normal."""

    duration_s: float
    """From the onset until all is normal again."""

    time_to_peak_s: float = 0.0
    """From the onset to the peak; 0: at once."""

    peak_s: float | None = None
    """How long it stays at the peak; None: half of what is left after the time to peak, so that the other half is decay."""

    def __post_init__(self) -> None:
        expect(self, "at_s", 0 <= self.at_s < np.inf, "0 or more")
        expect(self, "duration_s", 0 < self.duration_s < np.inf, "more than 0")
        expect(
            self,
            "time_to_peak_s",
            0 <= self.time_to_peak_s <= self.duration_s,
            f"from 0 to duration_s={self.duration_s:g}",
        )
        left_s = self.duration_s - self.time_to_peak_s
        if self.peak_s is not None:
            expect(self, "peak_s", 0 <= self.peak_s <= left_s, f"from 0 to duration_s - time_to_peak_s = {left_s:g}")

    @property
    def corners_s(self) -> tuple[float, float, float, float]:
        """Onset, peak, the end of the peak, over."""
        peak = self.at_s + self.time_to_peak_s
        over = self.at_s + self.duration_s
        falls = peak + self.peak_s if self.peak_s is not None else (peak + over) / 2
        return self.at_s, peak, min(falls, over), over

    def height(self, seconds: Floats) -> Floats:
        """0: normal; 1: the peak. Where it jumps, the height is the higher one."""
        onset, peak, falls, over = self.corners_s
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            up = (seconds - onset) / (peak - onset)
            down = (over - seconds) / (over - falls)
        inside = np.where(seconds < peak, up, np.where(seconds <= falls, 1.0, down))
        heights: Floats = np.where((seconds < onset) | (seconds > over), 0.0, np.clip(inside, 0.0, 1.0))
        return heights

    def cuts_s(self) -> Floats:
        """The corners, and the slopes between them cut into pieces."""
        onset, peak, falls, over = self.corners_s
        return np.unique(np.concatenate([np.linspace(onset, peak, PIECES + 1), np.linspace(falls, over, PIECES + 1)]))


def expect(spike: Outline, name: str, holds: bool, expected: str) -> None:
    if not holds:
        raise SettingError(f"spike at_s={spike.at_s:g}: {name} must be {expected}, got {getattr(spike, name)!r}")
