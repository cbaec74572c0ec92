"""Housekeeping of a base: rows that all readers have read, and dead letters that are too many or too old.

Reading files may take long, so a look at them runs beside the driver. It gets a copy of what it needs and leaves an answer,
which the next tick takes. An answer names absolute positions, so it stays right however late it comes.
"""

import logging
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from elastream.engine.beside import mailbox
from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.errors import Damaged
from elastream.lanes.readers import acknowledged
from elastream.lanes.segment_files import SegmentReader
from elastream.lanes.segments import LaneId, Slice, decode_schema
from elastream.lanes.state import LedgerState
from elastream.lanes.store import Store
from elastream.settings import Settings

LOOK_S = 2.0
"""Between two looks."""

MAX_SLICES = 16
"""Slices of dead letters that one look reads."""

DAY_S = 86_400.0

log = logging.getLogger("elastream.tick")


@dataclass(frozen=True)
class _Letters:
    """The oldest dead letters: their position in the queue, and where they are."""

    first: int
    slices: tuple[tuple[Slice, str], ...]
    """Each with its schema."""
    wall_s: float


@dataclass(frozen=True)
class _Question:
    outputs: tuple[str, ...]
    """Those with rows."""
    letters: _Letters | None


@dataclass(frozen=True)
class _Answer:
    read: dict[str, int]
    """Per output, the position up to which all readers have read it."""
    old_until: int
    """Dead letters before this position are too old."""


class Housekeeping:
    """`step` and `take` are called by the driver; the looks run beside it, or inline."""

    def __init__(self, store: Store, settings: Settings, outputs: tuple[str, ...], *, inline: bool) -> None:
        """`outputs` are the operators that are read from outside."""
        self._store = store
        self._outputs = (*outputs, DEAD_LETTERS)
        self._max_letters = settings.errors.most_letters
        self._ages = (
            LetterAges(store, settings.errors.letters_days) if settings.errors.letters_days is not None else None
        )
        self._looks = mailbox("housekeeping", self._look, inline=inline)
        self._looked_s = 0.0
        self._waiting = False
        """True from a question to its answer."""
        self._answer: _Answer | None = None

    @property
    def is_looking(self) -> bool:
        """True while the answer of a look has not been taken."""
        return self._waiting

    def step(self, state: LedgerState, now: float, wall_s: float) -> None:
        """Begin a look if it is time to and none is under way."""
        if now - self._looked_s < LOOK_S or self._waiting:
            return
        self._looked_s = now
        outputs = tuple(name for name in self._outputs if _rows(state, name))
        if outputs:
            self._waiting = True
            self._looks.put(_Question(outputs, self._oldest_letters(state, wall_s)))

    def take(self, state: LedgerState) -> tuple[list[tuple[str, int, int]], int]:
        """Per output, the rows at its head that may go; and the number of dead letters behind those that go unread."""
        answer, self._answer = self._answer, None
        if answer is None:
            return [], 0
        self._waiting = False
        read = []
        for name, position in answer.read.items():
            queue = state.queue(LaneId(name, 0))
            gone = max(0, min(position, queue.appended) - queue.consumed)
            if gone:
                read.append((name, 0, gone))
        return read, self._expired(state, answer, sum(rows for name, _, rows in read if name == DEAD_LETTERS))

    def close(self, timeout_s: float) -> None:
        """No step comes any more."""
        if self._looks.close(timeout_s) and self._ages is not None:
            self._ages.close()

    def _expired(self, state: LedgerState, answer: _Answer, read: int) -> int:
        if not _rows(state, DEAD_LETTERS):
            return 0
        queue = state.queue(LaneId(DEAD_LETTERS, 0))
        too_many = len(queue) - self._max_letters if self._max_letters is not None else 0
        gone = max(too_many, min(answer.old_until, queue.appended) - queue.consumed) - read
        if gone <= 0:
            return 0
        log.warning("%d dead letters are removed unread: they are too many, or too old", gone)
        return gone

    def _oldest_letters(self, state: LedgerState, wall_s: float) -> _Letters | None:
        if self._ages is None or not _rows(state, DEAD_LETTERS):
            return None
        queue = state.queue(LaneId(DEAD_LETTERS, 0))
        slices = tuple((piece, state.schemas[piece.schema]) for piece in islice(queue.slices, MAX_SLICES))
        return _Letters(queue.consumed, slices, wall_s)

    # -- beside the driver

    def _look(self, question: _Question) -> None:
        read: dict[str, int] = {}
        old_until = 0
        try:
            read = self._positions(question.outputs)
            if question.letters is not None and self._ages is not None:
                letters = question.letters
                old_until = letters.first + self._ages.too_old(letters.slices, letters.wall_s)
        finally:
            self._answer = _Answer(read, old_until)

    def _positions(self, outputs: tuple[str, ...]) -> dict[str, int]:
        positions = {}
        for name in outputs:
            try:
                position = acknowledged(self._store, name)
            except OSError as error:
                log.warning("base %s: how far readers of %r have come cannot be read now: %s", self._store, name, error)
                continue
            if position is not None:
                positions[name] = position
        return positions


class LetterAges:
    """Ages of dead letters. The time of a failure is in the letter itself, so only the oldest are read."""

    def __init__(self, store: Store, days: float) -> None:
        self._reader = SegmentReader(store)
        self._age_s = days * DAY_S
        self._next_s = 0.0
        """Wall time before which no letter is too old."""

    def too_old(self, slices: tuple[tuple[Slice, str], ...], wall_s: float) -> int:
        """The number of letters at the head of these slices that are too old."""
        if wall_s < self._next_s:
            return 0
        old = 0
        for piece, schema in slices:
            try:
                batch = self._reader.read(piece, decode_schema(schema))
            except Damaged as error:
                log.warning("a dead letter cannot be read, so its age is not known: %s", error)
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

    def close(self) -> None:
        self._reader.close()


def _rows(state: LedgerState, operator: str) -> int:
    queue = state.lanes.get(LaneId(operator, 0))
    return len(queue) if queue is not None else 0
