"""The bounds of dead letters: how many a base keeps, and for how long. What is beyond them goes unread, and is counted."""

import logging
from itertools import islice

import pyarrow as pa

from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.errors import Damaged
from elastream.lanes.queues import LaneQueue
from elastream.lanes.segment_files import SegmentReader
from elastream.lanes.segments import LaneId, decode_schema
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store
from elastream.settings import Settings

LOOK_S = 2.0
"""Between two looks."""

MOST_SLICES = 16
"""Slices that are read in one look, for it is the tick that waits."""

DAY_S = 86_400.0

log = logging.getLogger("elastream.tick")


class LetterBounds:
    """Of one run, in the tick's thread. When a letter failed is in the letter itself, so only the oldest are read."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._reader = SegmentReader(store)
        self._most = settings.most_letters
        self._age_s = settings.letters_days * DAY_S if settings.letters_days is not None else None
        self._looked_s = 0.0
        self._next_s = 0.0
        """On the wall's clock: no letter is too old before."""

    def expired(self, state: LedgerState, read: int, now: float, wall_s: float) -> int:
        """How many of the oldest letters go now, behind the first `read`, which go anyway."""
        queue = state.lanes.get(LaneId(DEAD_LETTERS, 0))
        if now - self._looked_s < LOOK_S or queue is None or not len(queue):
            return 0
        self._looked_s = now
        many = len(queue) - self._most if self._most is not None else 0
        gone = max(many, self._old(queue, state, wall_s)) - read
        if gone <= 0:
            return 0
        log.warning("%d dead letters are removed unread: they are too many, or too old", gone)
        return gone

    def close(self) -> None:
        self._reader.close()

    def _old(self, queue: LaneQueue, state: LedgerState, wall_s: float) -> int:
        """How many at the head of the queue are too old."""
        if self._age_s is None or wall_s < self._next_s:
            return 0
        old = 0
        for piece in islice(queue.slices, MOST_SLICES):
            try:
                batch = self._reader.read(piece, decode_schema(state.schemas[piece.schema]))
            except Damaged as error:
                log.warning("a dead letter cannot be read, so that its age is not known: %s", error)
                self._next_s = wall_s + DAY_S
                break
            except OSError as error:
                log.warning("a dead letter cannot be read now: %s", error)
                break
            for failed_us in batch.column("failed_at").cast(pa.int64()).to_pylist():
                if failed_us / 1e6 + self._age_s > wall_s:
                    self._next_s = failed_us / 1e6 + self._age_s
                    return old
                old += 1
        return old
