"""The entry of a turn: what receipts, edges, readers and whoever scales have made of it since the one before."""

from elastream.engine.clock import Clock
from elastream.engine.messages import SourceWork
from elastream.engine.tick.estimates import Estimates
from elastream.engine.tick.host_news import Said
from elastream.engine.tick.letter_bounds import LetterBounds
from elastream.engine.tick.merge import TickResult
from elastream.engine.tick.planner import Planner
from elastream.engine.tick.ports import EdgeBatch
from elastream.engine.tick.run_base import RunBase
from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import Entry
from elastream.settings import Settings

ESTIMATES_S = 2.0
"""Between two entries with what was learned of the operators."""


class EntryMaker:
    """Makes entries; applying and writing them is the turn's. In the tick's thread."""

    def __init__(
        self,
        settings: Settings,
        base: RunBase,
        estimates: Estimates,
        planner: Planner,
        clock: Clock,
        outputs: tuple[str, ...],
    ) -> None:
        self._base = base
        self._state = base.state
        self._estimates = estimates
        self._planner = planner
        self._clock = clock
        self._outputs = outputs
        self._letters = LetterBounds(base.store, settings)
        self._learned_s = 0.0

    def make(
        self,
        result: TickResult,
        said: list[Said],
        batches: list[EdgeBatch],
        resized: dict[str, int],
        now: float,
    ) -> Entry | None:
        """The next entry; None when there is nothing to commit."""
        read = self._base.read_from_outside(self._outputs, now) + self._discarded(result)
        expired = self._expired(read, now)
        if not (said or batches or resized or read or expired):
            return None
        finished: list[SourceWork] = [known.source for known, _ in said if known.source is not None]
        learned = {}
        if now - self._learned_s >= ESTIMATES_S:
            self._learned_s, learned = now, self._estimates.known()
        entry = Entry(
            self._state.entry + 1,
            self._clock.wall_s(),
            result.consumed + read + ([(DEAD_LETTERS, 0, expired)] if expired else []),
            result.appended,
            result.counts | ({DEAD_LETTERS: OperatorCounts(expired=expired)} if expired else {}),
            self._planner.replays.states_after(finished) if finished else {},
            sizes=resized,
            estimates=learned,
            changes=result.changes,
            wholes=result.wholes,
        )
        for batch in batches:
            entry = batch.entry(entry, result)
        return entry

    def _expired(self, read: list[tuple[str, int, int]], now: float) -> int:
        """Dead letters that go because they are too many or too old."""
        acknowledged = sum(rows for name, _, rows in read if name == DEAD_LETTERS)
        return self._letters.expired(self._state, acknowledged, now, self._clock.wall_s())

    def _discarded(self, result: TickResult) -> list[tuple[str, int, int]]:
        """Everything that waits in lanes that are to be discarded and have no work under way."""
        dropped = []
        for lane in sorted(lane for lane in self._planner.held if not self._planner.is_busy(lane)):
            self._planner.held.discard(lane)
            rows = len(self._state.lanes[lane])
            if rows and lane not in self._state.given:
                dropped.append((*lane, rows))
                self._planner.dropped(lane, rows)
                result.overflowed[lane] += rows
                result.counts.setdefault(lane.operator, OperatorCounts()).overflowed += rows
        return dropped

    def close(self) -> None:
        self._letters.close()
