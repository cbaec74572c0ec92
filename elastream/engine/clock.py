"""The clock of a run: steady, also when somebody sets the machine's."""

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds that only grow, from an arbitrary beginning: for everything that is compared."""
        ...

    def wall_s(self) -> float:
        """Seconds since 1970: for due times, which tuples carry between machines."""
        ...

    def cpu_s(self) -> float:
        """CPU time that this thread has used."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SteadyClock:
    """Wall time as it was when the run began, plus what has passed since by the clock that only grows."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now(self) -> float:
        return time.monotonic()

    def wall_s(self) -> float:
        return time.monotonic() + self._offset_s

    def cpu_s(self) -> float:
        return time.thread_time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class VirtualClock:
    """Passes only when somebody waits: hours of a stream in seconds of a test."""

    def __init__(self, wall_s: float = 1.7e9) -> None:
        self._began_s = wall_s
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def wall_s(self) -> float:
        return self._began_s + self._now

    def cpu_s(self) -> float:
        """Nothing takes time."""
        return 0.0

    def sleep(self, seconds: float) -> None:
        # Less is lost beside the seconds since 1970, and time would stand still.
        self._now += max(seconds, 1e-5)
