"""The edges as the tick sees them: which tuples Spark is given next, and what came of those it was given.

`plan`, `begin`, `take` and the others are called in the tick's thread. Spark's threads leave what they have done in a queue.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue

from elastream import rules
from elastream.connectors.query.lane_source import Offer
from elastream.connectors.query.source_progress import SourceProgress
from elastream.connectors.query.task import EDGE_WORK, EdgeRouting, EdgeWork, to_text
from elastream.engine.driver.dispatch.works import Dispatch
from elastream.engine.driver.ports import EdgeBatch, QueryBatch, SinkJob, SourcesEnded, SparkPart
from elastream.engine.driver.tables import Tables
from elastream.engine.messages import LaneRows, Routing, ServeWork
from elastream.lanes.entries import Given, Reread
from elastream.lanes.segments import LaneId, SchemaId
from elastream.settings import Settings
from elastream.topology import Graph, Kind
from elastream.workload.replay import Replay

FIRST_BATCH_S = 30.0
"""Spark may take this long to begin: sources are not silent before."""

WriteJob = Callable[[str, int, list[EdgeWork]], object]


@dataclass
class _SinkState:
    name: str
    every_s: float
    writing: bool = False
    wrote_s: float = 0.0
    given: list[Given] = field(default_factory=list)


class SparkEdges:
    """What Spark serves by itself, for one run."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        tables: Tables,
        progress: SourceProgress,
        folder: str,
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._state = tables.state
        self._estimates = tables.estimates
        self._facts = tables.facts
        self._headroom = tables.works.headroom
        self._replays = tables.replays
        self._progress = progress
        self._folder = folder
        self._sinks = [_SinkState(o.name, o.writer.every_s) for o in graph.operators if o.writer is not None]
        self._streams = frozenset(source.name for source in graph.sources if not isinstance(source.source, Replay))
        self._frames = [o.name for o in graph.operators if o.kind is Kind.DATAFRAME]
        self._done: SimpleQueue[EdgeBatch] = SimpleQueue()
        self.stateful: frozenset[str] = frozenset()
        self.write_job: WriteJob | None = None
        self.paused = False
        """True while the query stands still: nothing is offered."""
        self._offered = False
        self._flushing = False
        self._next_offer: list[Given] | None = None
        """Planned, and to be left for Spark when it is committed."""
        self._batch_entry: int | None = None
        self._has_read = False
        """True when a batch of the query has begun."""
        self._opened_s: float | None = None
        self._now = 0.0
        self._committed_batch = threading.Condition()
        self._last_committed: QueryBatch | None = None
        """The newest batch of the query that is in the ledger."""
        self.planned: dict[str, int] = {}
        """Per dataframe operator, how many tasks the last offer has."""
        self.planned_again: dict[str, int] = {}

    # -- before the first turn

    def open(self) -> None:
        """What was given and did not come back is given again, as it was."""
        for sink in self._sinks:
            sink.given = [given for lane, given in self._state.given.items() if lane.operator == sink.name]
        outstanding = self._outstanding()
        self._offered = bool(outstanding)
        if self._frames:
            self._leave_offer(outstanding)

    def reopen(self) -> None:
        """The query is to be started again within a run: the same is offered, and what it took last can be read again."""
        self._leave_offer(self._outstanding())

    # -- the tick's thread

    def plan(self, dispatch: Dispatch, now: float, wall_s: float) -> None:
        self._now = now
        if self._opened_s is None:
            self._opened_s = now
        for sink in self._sinks:
            if not sink.writing and not sink.given:
                sink.given = self._sink_given(sink, now, wall_s)
                dispatch.given += sink.given
        if self._frames and not self._offered and not self.paused:
            found = [given for name in self._frames for given in self._given(name, wall_s)]
            flushes = not found and any(again.slices for again in self._state.reread)
            if found or flushes:
                dispatch.given += found
                dispatch.offer = self._state.offer + 1
                self._offered, self._flushing = True, flushes
                self._next_offer = found

    def begin(self) -> None:
        for sink in self._sinks:
            if sink.given and not sink.writing and self.write_job is not None:
                sink.writing = True
                works = [EdgeWork(given.entry, *self._work([given])) for given in sink.given]
                self.write_job(sink.name, sink.given[0].entry, works)
        if self._offered and self._next_offer is not None:
            self._leave_offer(self._next_offer)

    def take(self) -> list[EdgeBatch]:
        found = []
        while not self._done.empty():
            found.append(self._done.get())
        return found

    def part_of(self, batch: EdgeBatch) -> SparkPart:
        origin = batch.origin
        if isinstance(origin, QueryBatch):
            reread = self._reread() if origin.offer_read and self.stateful else None
            return SparkPart(
                self._progress.states_after(self._state, origin.query), origin.query, origin.number, reread
            )
        return SparkPart(self._progress.ended(self._state) if isinstance(origin, SourcesEnded) else {})

    def committed(self, batch: EdgeBatch, now: float) -> None:
        origin = batch.origin
        if isinstance(origin, SinkJob):
            self._sink_written(origin.sink, now)
        elif isinstance(origin, QueryBatch):
            rows = {receipt.head: sum(lane.processed for lane in receipt.operators) for receipt in batch.receipts}
            self._progress.add(origin.number, rows)
            self._batch_ended(offer_read=origin.offer_read)
            with self._committed_batch:
                self._last_committed = origin
                self._committed_batch.notify_all()

    def await_commit(self, batch: QueryBatch, timeout_s: float) -> bool:
        """In Spark's thread: wait until a batch of the query is in the ledger; False if the time ran out first."""
        with self._committed_batch:
            return self._committed_batch.wait_for(lambda: self._last_committed == batch, timeout_s)

    def is_drained(self) -> bool:
        if not self.is_idle():
            return False
        if self.stateful and any(again.slices for again in self._state.reread):
            # Spark moves the watermark when a batch is over: what is final by it comes with the next one.
            return False
        return self._progress.all_over(self._state)

    def is_idle(self) -> bool:
        return not self._offered and not any(sink.writing or sink.given for sink in self._sinks)

    def spare_from(self) -> int:
        return self._state.entry + 1 if self._batch_entry is None else self._batch_entry

    def routing(self, wall_s: float) -> EdgeRouting:
        """For the batch of the query that begins now."""
        heads = [source.name for source in self._graph.sources] + self._frames
        self._batch_entry = self._state.entry
        self._has_read = True
        queued = {}
        for head in heads:
            queued.update(self._facts.queued(head))
        return EdgeRouting(
            self._state.entry,
            wall_s,
            Routing(dict(self._state.sizes), dict(self._state.owners), self._facts.routing().splits),
            self._state.entry,
            queued,
            {head: found for head in heads if (found := self._facts.loads_of(head))},
            self._state.memories,
        )

    def discarding(self, wall_s: float) -> EdgeRouting:
        """For a batch that Spark repeats although the ledger has it."""
        return EdgeRouting(self._state.entry, wall_s, Routing(), 0, discard=True)

    def _batch_ended(self, *, offer_read: bool) -> None:
        """A batch of the query is in the ledger.

        Spark asks for the news of each operator by itself, and may have read only some of an offer that came in between. The
        others read theirs in the next batch, and until then nothing else is offered.
        """
        self._batch_entry = None
        if offer_read and not self._outstanding():
            self._offered = self._flushing = False
            self._next_offer = None

    def _reread(self) -> list[Reread]:
        """What the operators with state take in the offer that is out; asked before it is consumed."""
        found = []
        for lane, given in self._state.given.items():
            if lane.operator in self.stateful:
                queue = self._state.lanes[lane]
                slices = list(queue.peek(given.rows))
                found.append(Reread(self._state.offer, *lane, queue.consumed, given.planned_s, given.t_out_s, slices))
        return found

    def _sink_written(self, sink: str, wrote_s: float) -> None:
        """A job's receipts are in the ledger."""
        for state in self._sinks:
            if state.name == sink:
                state.writing, state.given, state.wrote_s = False, [], wrote_s

    def has_unread(self, source: str, part: str | None, wall_s: float) -> bool:
        """True when rows of a source, or of one part of it, are there or may be: a batch that is being read may have some."""
        if source not in self._streams:
            return self._replays.has_unread(source, part, wall_s)
        if not self._has_read:
            return self._now - (self._opened_s or 0.0) < FIRST_BATCH_S
        if self._batch_entry is not None:
            return True
        lag = self._progress.lag().get(source, {})
        return lag.get(part.replace("/", "-"), 0) > 0 if part else any(lag.values())

    @property
    def has_offer(self) -> bool:
        return self._offered

    # -- Spark's threads

    def leave(self, batch: EdgeBatch) -> None:
        self._done.put(batch)

    # -- inside

    def _outstanding(self) -> list[Given]:
        """Given to dataframe operators, and not read yet."""
        return [given for lane, given in self._state.given.items() if lane.operator in self._frames]

    def _sink_given(self, sink: _SinkState, now: float, wall_s: float) -> list[Given]:
        """All that waits for a sink, when its time has come: when it has collected for long, or half a queue, or the end is near."""
        lanes = self._state.lanes_of(sink.name)
        most = max((len(queue) for queue in lanes.values()), default=0)
        if not most:
            return []
        half = (self._settings.queues.q_size or rules.MOST_ROWS) // 2
        replays = self._replays
        over = replays.stopped or (replays.exhausted() and self._progress.all_over(self._state))
        if now - sink.wrote_s < sink.every_s and most < half and not over:
            return []
        return self._given(sink.name, wall_s)

    def _given(self, operator: str, wall_s: float) -> list[Given]:
        """As many tuples of each lane as a job or batch shall serve."""
        quota = rules.quota(self._estimates.of(operator), self._settings.works.max_budget_s, rules.FIRST_WRITE)
        lanes = {number: queue for number, queue in self._state.lanes_of(operator).items() if len(queue)}
        left = self._headroom.for_sender(operator)
        # At least one tuple: with fewer places than lanes none would ever get any.
        each = max(1, left // max(1, len(lanes)))
        found = []
        for number, queue in lanes.items():
            rows = min(queue.portion(quota, rules.MOST_BYTES), each, left)
            left -= rows
            if rows:
                found.append(Given(operator, number, rows, self._state.entry, wall_s, self._settings.queues.t_out_s))
        return found

    def _leave_offer(self, given: list[Given]) -> None:
        self._next_offer = None
        lanes: dict[str, list[str]] = {}
        for one in given:
            lanes.setdefault(one.operator, []).append(to_text(EdgeWork(self._state.entry, *self._work([one]))))
        if self._flushing:
            # Nothing to read, so that Spark's watermark has a batch to move in.
            nothing = ServeWork(EDGE_WORK, "", [], 0.0, 0.0, 1, False, 0)
            lanes = {name: [to_text(EdgeWork(self._state.entry, nothing, {}))] for name in self.stateful}
        again: dict[str, list[str]] = {}
        again_offer = -1
        for reread in self._state.reread:
            again_offer = reread.offer
            rows = LaneRows(reread.lane, reread.first, reread.slices)
            work = self._lane_work(reread.operator, [rows], reread.planned_s, reread.t_out_s)
            again.setdefault(reread.operator, []).append(
                to_text(EdgeWork(self._state.entry, work, self._schemas([rows])))
            )
        self.planned = {name: len(works) for name, works in lanes.items()}
        self.planned_again = {name: len(works) for name, works in again.items()}
        Offer(self._state.offer, lanes, again_offer, again).leave_in(self._folder)

    def _work(self, given: list[Given]) -> tuple[ServeWork, dict[SchemaId, str]]:
        rows = []
        for one in given:
            queue = self._state.lanes[LaneId(one.operator, one.lane)]
            rows.append(LaneRows(one.lane, queue.consumed, list(queue.peek(one.rows))))
        first = given[0]
        return self._lane_work(first.operator, rows, first.planned_s, first.t_out_s), self._schemas(rows)

    def _lane_work(self, operator: str, rows: list[LaneRows], planned_s: float, t_out_s: float | None) -> ServeWork:
        return ServeWork(EDGE_WORK, operator, rows, planned_s, 0.0, rules.MOST_ROWS, False, 0, t_out_s)

    def _schemas(self, rows: list[LaneRows]) -> dict[SchemaId, str]:
        return {piece.schema: self._state.schemas[piece.schema] for one in rows for piece in one.slices}
