"""Clean-up of segments: those whose tuples are consumed, and those that no entry ever named."""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable

from elastream.lanes.segments import FOLDER
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store

log = logging.getLogger("elastream.lanes")

GRACE_S = 5.0
"""A segment that nothing names stays this long, for a reader from outside that is a little behind."""

SWEEP_S = 60.0
"""Between two looks for segments that nobody ever named."""


class SegmentCleanup:
    """Removes segments of which nothing waits. Those that a live host still writes are spared.

    A host's segments begin with its incarnation; those of the edge's tasks with the entry that was newest when they began.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._live: set[str] = set()
        self._ended: set[str] = set()
        self._idle: set[str] = set()
        self._going: deque[tuple[float, str]] = deque()
        self._swept_s = clock()

    def host_came(self, incarnation: str) -> None:
        self._live.add(incarnation)

    def host_went(self, incarnation: str) -> None:
        self._live.discard(incarnation)
        gone = {name for name in self._idle if _writer_of(name) == incarnation}
        self._idle -= gone
        self._ended = {name for name in self._ended if _writer_of(name) != incarnation}
        self._let_go(sorted(gone))

    def after_commit(
        self,
        state: LedgerState,
        freed: Iterable[str],
        ended: Iterable[str],
        spare_from: int,
        in_use: Collection[str] = (),
    ) -> None:
        """`freed`: nothing of them waits; `ended`: nothing will be added to them; `spare_from`: the edge's tasks began then.

        `in_use`: a host has a work that reads them, whether something of them is still needed or not.
        """
        ended = set(ended)
        self._ended |= ended
        # A segment may be freed and named again, for its host goes on writing to it.
        for name in sorted({*freed, *ended}):
            if state.names(name):
                continue
            if name in self._ended or not self._is_live(name):
                self._ended.discard(name)
                self._idle.discard(name)
                self._let_go([name])
            else:
                self._idle.add(name)
        now = self._clock()
        gone, kept = [], []
        while self._going and self._going[0][0] <= now:
            name = self._going.popleft()[1]
            if name in in_use:
                kept.append(name)
            elif not state.names(name):
                gone.append(f"{FOLDER}/{name}")
        self._let_go(kept)
        try:
            if gone:
                self._store.delete(gone)
            if now - self._swept_s >= SWEEP_S:
                self.sweep(state, spare_from)
        except OSError as error:
            # Nothing depends on it, and the stream need not stop.
            log.warning("segments that nobody needs could not be removed now: %s", error)
            self._let_go(name.removeprefix(f"{FOLDER}/") for name in gone)

    def sweep(self, state: LedgerState, spare_from: int) -> int:
        """Remove the segments that nothing names and nobody writes; says how many."""
        self._swept_s = self._clock()
        named = state.segments() | {name for _, name in self._going}
        orphans = [
            f"{FOLDER}/{name}"
            for name in self._store.sizes(FOLDER)
            if name not in named and name.endswith(".arrow") and not self._may_be_written(name, spare_from)
        ]
        # What a task that was killed left half written.
        orphans += [
            f"{FOLDER}/{name}"
            for name in self._store.unfinished(FOLDER)
            if "-" in name and not self._may_be_written(name, spare_from)
        ]
        self._store.delete(orphans)
        return len(orphans)

    def _let_go(self, names: Iterable[str]) -> None:
        until = self._clock() + GRACE_S
        self._going.extend((until, name) for name in names)

    def _is_live(self, name: str) -> bool:
        return _writer_of(name) in self._live

    def _may_be_written(self, name: str, spare_from: int) -> bool:
        writer = _writer_of(name)
        if writer.isdigit() and len(writer) == 12:
            return int(writer) >= spare_from
        return writer in self._live


def _writer_of(segment: str) -> str:
    return segment.partition("-")[0]
