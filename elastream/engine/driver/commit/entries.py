"""Entries of the ledger: the only place that builds them after a run has begun.

An entry has two parts. What was done (receipts, readers, sizes) is built and applied first, because placement and dispatch
need it. What is planned (new owners, watermarks, tuples given to sinks and to Spark) completes it before it is written.
"""

import msgspec

from elastream.engine.driver.commit.estimates import Estimates
from elastream.engine.driver.commit.host_events import WorkDone
from elastream.engine.driver.commit.housekeeping import Housekeeping
from elastream.engine.driver.commit.merge import TickResult
from elastream.engine.driver.dispatch.replays import Replays
from elastream.engine.driver.dispatch.works import Dispatch, Moment, WorkTable
from elastream.engine.driver.placement.group_mover import NewOwners
from elastream.engine.driver.ports import SparkPart
from elastream.engine.messages import SourceWork
from elastream.engine.worker.dead_letters import DEAD_LETTERS
from elastream.lanes.counts import OperatorCounts
from elastream.lanes.entries import Entry
from elastream.lanes.state import LedgerState

ESTIMATES_S = 2.0
"""Between two entries with estimates of the operators."""


class EntryBuilder:
    """Builds entries; applying and writing them is the tick's. In the driver's thread only."""

    def __init__(
        self,
        state: LedgerState,
        estimates: Estimates,
        works: WorkTable,
        replays: Replays,
        housekeeping: Housekeeping,
    ) -> None:
        self._state = state
        self._estimates = estimates
        self._works = works
        self._replays = replays
        self._housekeeping = housekeeping
        self._learned_s = 0.0

    def done(
        self,
        result: TickResult,
        done: list[WorkDone],
        spark: list[SparkPart],
        sizes: dict[str, int],
        moment: Moment,
    ) -> Entry | None:
        """The next entry with what was done; None if that is nothing."""
        self._housekeeping.step(self._state, moment.now, moment.wall_s)
        acknowledged, expired = self._housekeeping.take(self._state)
        read = acknowledged + self._discarded(result)
        if not (done or spark or sizes or read or expired):
            return None
        finished: list[SourceWork] = [work.source for work, _ in done if work.source is not None]
        learned = {}
        if moment.now - self._learned_s >= ESTIMATES_S:
            self._learned_s, learned = moment.now, self._estimates.known()
        entry = Entry(
            self._state.entry + 1,
            moment.wall_s,
            result.consumed + read + ([(DEAD_LETTERS, 0, expired)] if expired else []),
            result.appended,
            result.counts | ({DEAD_LETTERS: OperatorCounts(expired=expired)} if expired else {}),
            self._replays.states_after(finished) if finished else {},
            sizes=sizes,
            estimates=learned,
            changes=result.changes,
            wholes=result.wholes,
            memories=result.memories,
        )
        for part in spark:
            entry = _with_spark(entry, part)
        return entry

    def planned(
        self, entry: Entry | None, owners: NewOwners, watermarks: dict[str, float], dispatch: Dispatch, wall_s: float
    ) -> Entry | None:
        """The entry of a tick, complete; None if there is nothing to commit."""
        if not (owners or watermarks or dispatch.given or dispatch.offer >= 0):
            return entry
        return msgspec.structs.replace(
            entry or Entry(self._state.entry + 1, wall_s),
            given=dispatch.given,
            offer=dispatch.offer,
            owners=owners,
            watermarks=watermarks,
        )

    def _discarded(self, result: TickResult) -> list[tuple[str, int, int]]:
        """Everything in lanes that are to be discarded and have no work under way."""
        dropped = []
        for lane in sorted(lane for lane in self._works.discarding if not self._works.is_busy(lane)):
            self._works.discarding.discard(lane)
            rows = len(self._state.lanes[lane])
            if rows and lane not in self._state.given:
                dropped.append((*lane, rows))
                self._works.discarded(lane, rows)
                result.overflowed[lane] += rows
                result.counts.setdefault(lane.operator, OperatorCounts()).overflowed += rows
        return dropped


def _with_spark(entry: Entry, part: SparkPart) -> Entry:
    entry = msgspec.structs.replace(entry, sources={**entry.sources, **part.sources})
    if part.query is not None:
        entry = msgspec.structs.replace(entry, query=part.query, batch=part.batch, reread=part.reread)
    return entry
