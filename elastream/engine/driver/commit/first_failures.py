"""First failures of a run: each kind is told at once, and an operator that serves nothing ends the run."""

import linecache
import logging
import re
from collections import Counter
from collections.abc import Iterable

from elastream.engine.messages import FailureNote, Receipt
from elastream.engine.worker.dead_letters import kind_of
from elastream.errors import OperatorFailed
from elastream.user_code import short

log = logging.getLogger("elastream.failures")

MOST_TOLD = 20
"""Kinds of failures of one operator that are told; the dead letters have all."""

_PLACE = re.compile(r" at (.+):(\d+)$")


class FirstFailures:
    """Hears the receipts of a run in the tick's thread."""

    def __init__(self, stop_after: int | None) -> None:
        """`stop_after`: an operator that has failed on so many tuples and served none ends the run; None: it does not."""
        self._stop_after = stop_after
        self._told: set[tuple[str, str]] = set()
        self._kinds: Counter[str] = Counter()
        self._first: dict[str, FailureNote] = {}
        self._served: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self.words: list[str] = []
        """Every kind of failure that was told, in the order in which they came."""

    def hear(self, receipts: Iterable[Receipt]) -> None:
        """Tell of failures that are new; raises when an operator has failed on all of its first tuples."""
        for receipt in receipts:
            for note in receipt.failures:
                self._first.setdefault(note.operator, note)
                self._tell(note)
            for lane in receipt.operators:
                # Timers give tuples, too.
                self._served[lane.operator] += lane.processed + lane.emitted
                if lane.failed:
                    self._failed[lane.operator] += lane.failed
        if self._stop_after is not None:
            for operator, note in self._first.items():
                if not self._served[operator] and self._failed[operator] >= self._stop_after:
                    raise OperatorFailed(
                        f"operator {operator!r} failed on all of its first {self._failed[operator]} tuples, so the run stops: "
                        f"{in_words(note)}; mend the function, or allow it with ErrorSettings(stop_after_failures=None), "
                        "--allow-dead-letters on the command line"
                    )

    def _tell(self, note: FailureNote) -> None:
        key = note.operator, kind_of(note.error)
        if key in self._told or self._kinds[note.operator] >= MOST_TOLD:
            return
        self._told.add(key)
        self._kinds[note.operator] += 1
        words = f"operator {note.operator!r} failed on a tuple, which is a dead letter now: {in_words(note)}"
        self.words.append(words)
        log.error("%s", words)


def in_words(note: FailureNote) -> str:
    """The error, the line of code if it is at hand, and the row."""
    place = _PLACE.search(note.error)
    code = linecache.getline(place.group(1), int(place.group(2))).strip() if place else ""
    return f"{note.error}{f' ({short(code, 120)})' if code else ''}; the tuple is {note.row}"
