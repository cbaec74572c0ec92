"""Event times and clock of a source: the newest time of each of its parts, the parts that are silent, and what is unread."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from elastream.engine.driver.event_time.progress import INFINITY
from elastream.engine.event_times import origin_name
from elastream.lanes.state import LedgerState

HasUnread = Callable[[str, str | None, float], bool]
"""Of a source, a part of it (None: any part) and the wall time: True if rows are there that were not read."""

RECENT_S = 0.1
"""A source that gave rows within this time goes on: whether it has more need not be asked in every turn."""


@dataclass
class _Part:
    newest_s: float
    """Event time."""
    heard_s: float
    """Monotonic time of its last row."""
    released_s: float = -INFINITY
    """The newest event time before which no range of a replay is missing."""
    coming: tuple[float, int] | None = None


class SourceClock:
    """A time by which a source has given all that it had. It stands still while rows are unread and none come."""

    def __init__(self, state: LedgerState, source: str, has_unread: HasUnread) -> None:
        self._state = state
        self._source = source
        self._has_unread = has_unread
        self._heard_s = -INFINITY
        self._coming: tuple[float, int] | None = None
        self.value = -INFINITY

    def was_read(self, now: float) -> None:
        """Rows came, or Spark has read all parts of all sources."""
        self._heard_s = now

    def advance(self, now: float, wall_s: float) -> None:
        # A replay makes ranges side by side: those before the newest must be there, too.
        made, reached = replay_position(self._state.sources.get(self._source, {}))
        if self._coming is not None and made >= self._coming[1]:
            self.value, self._coming = max(self.value, self._coming[0]), None
        waits = now - self._heard_s > RECENT_S and self._has_unread(self._source, None, wall_s)
        clock_s = self._heard_s if waits else now
        if self._coming is None and clock_s > self.value:
            if made >= reached:
                self.value = clock_s
            else:
                self._coming = clock_s, reached


class SourceTimes:
    """The least of the newest event times of a source's parts. Parts that ended or are idle do not count.

    A part is a partition of a topic, or the whole source where its rows have one order. A part is idle when it gave nothing for
    `idle_s` and has nothing unread.
    """

    def __init__(
        self, state: LedgerState, source: str, total: int | None, idle_s: float, has_unread: HasUnread
    ) -> None:
        """`total`: the rows of a replay; None for a source that Spark reads."""
        self._state = state
        self._source = source
        self._total = total
        self._idle_s = idle_s
        self._has_unread = has_unread
        self._parts: dict[str, _Part] = {}
        self._began_s: float | None = None
        self._read_s = -INFINITY
        self.value = -INFINITY

    def hear(self, origin: str, at_s: float, now: float) -> None:
        part = origin.removeprefix(origin_name(self._source, ""))
        known = self._parts.get(part)
        if known is None:
            self._parts[part] = _Part(at_s, now)
        else:
            known.newest_s, known.heard_s = max(known.newest_s, at_s), now

    def was_read(self, now: float) -> None:
        """The source was read: parts that gave no row then had none."""
        self._read_s = now

    def advance(self, now: float, wall_s: float) -> None:
        if self._began_s is None:
            self._began_s = now
        known = self._state.sources.get(self._source, {})
        made, reached = replay_position(known)
        if known.get("over") or (self._total is not None and made >= self._total):
            self.value = INFINITY
            return
        value = INFINITY
        for name, part in self._parts.items():
            self._release(part, made, reached)
            if part.released_s < value and not self._is_idle(name, part.heard_s, now, wall_s):
                value = part.released_s
        if len(self._parts) < known.get("partitions", 1) and not self._is_idle(None, self._began_s, now, wall_s):
            value = -INFINITY
        self.value = value

    def _release(self, part: _Part, made: int, reached: int) -> None:
        if part.coming is not None and made >= part.coming[1]:
            part.released_s, part.coming = part.coming[0], None
        if part.coming is None and part.newest_s > part.released_s:
            if made >= reached:
                part.released_s = part.newest_s
            else:
                part.coming = part.newest_s, reached

    def _is_idle(self, name: str | None, heard_s: float, now: float, wall_s: float) -> bool:
        if self._read_s - heard_s > self._idle_s:
            return True
        return now - heard_s > self._idle_s and not self._has_unread(self._source, name, wall_s)


def replay_position(known: dict[str, Any]) -> tuple[int, int]:
    """Up to where a replay has been made without a gap, and up to where it has been made at all. (0, 0) for others."""
    reached = known.get("next", 0)
    return min((first for first, _ in known.get("open", ())), default=reached), reached
