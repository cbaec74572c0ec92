"""One work, in a host or in a task of the edges: read rows, run operators, route what comes out, write, give a receipt.

The data does not leave the process between these steps.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastream import rules
from elastream.engine.messages import (
    LaneReceipt,
    LaneRows,
    LaneWork,
    LatencyCounts,
    Loads,
    Receipt,
    Routing,
    SourceReceipt,
    SourceWork,
    SyncWork,
    TimeWork,
    WholeWork,
    Work,
    problem_of,
)
from elastream.engine.worker.context import Chain, WorkerContext
from elastream.engine.worker.dead_letters import DEAD_LETTERS, Failure, all_failed, describe, letters, row_to_json
from elastream.engine.worker.delivery import Delivery
from elastream.engine.worker.functions import Made
from elastream.engine.worker.intake import DAMAGED, NAME, new_rows, set_aside, with_due
from elastream.engine.worker.outbox import Outbox
from elastream.engine.worker.service_times import time_operators
from elastream.engine.worker.split_keys import serve_split
from elastream.engine.worker.state_works import apart, sync_state, write_whole
from elastream.engine.worker.wake import wake_keys
from elastream.errors import ElastreamError, OperatorFailed
from elastream.kafka import Once
from elastream.lanes.segment_files import Written
from elastream.lanes.segments import LaneId
from elastream.scoring.latency import bucket_counts
from elastream.state.host_state import StateChanges
from elastream.topology import DUE, KeyedState, Kind, Operator, stored
from elastream.workload import Arrivals

LARGEST_CHUNK = 65536

FRAGILE = 64
"""The largest chunk after one with a tuple on which an operator raised."""

FEW = 8
"""Up to so many due times are looked at one by one."""

Deliver = Callable[[pa.RecordBatch, Delivery], object]


def run_work(context: WorkerContext, routing: Routing, work: Work) -> tuple[Receipt, Written | None]:
    """Do one work. An operator's defect comes back in the receipt; then nothing else is in it."""
    if isinstance(work, TimeWork):
        return Receipt(work.id, timed=time_operators(context, work.totals, work.seconds)), None
    if isinstance(work, SyncWork):
        return sync_state(context, work), None
    if isinstance(work, WholeWork):
        return write_whole(context, work)
    run = WorkRun(context, routing, work.turn, work.queued, work.loads)
    try:
        if isinstance(work, SourceWork):
            run.make(work)
        elif work.bury:
            run.bury(work)
        else:
            run.serve(work)
        return run.receipt(work.id)
    except ElastreamError as error:
        return Receipt(work.id, problem=problem_of(error)), None


class WorkRun:
    """The run of one work. Rows enter by `make`, `serve`, `enter` or `give`; `receipt` ends it."""

    def __init__(
        self,
        context: WorkerContext,
        routing: Routing,
        turn: int,
        queued: dict[str, list[int]] | None = None,
        loads: list[Loads] | None = None,
        deliver: Deliver | None = None,
    ) -> None:
        self._context = context
        self._deliver_to = deliver
        self._outbox = Outbox(routing, turn, queued or {}, loads or [])
        self._receipts: list[LaneReceipt] = []
        self._sources: list[SourceReceipt] = []
        self._failures: list[tuple[str, int, Failure]] = []
        self._memories: dict[str, Once] = {}
        self._finished: list[pa.Array] = []
        self._changes: dict[str, StateChanges] = {}
        self._woken: list[tuple[LaneReceipt, tuple[int, ...]]] = []
        """Lanes whose keys are woken, and their key groups."""
        self._mine: frozenset[int] = frozenset()
        """The key groups of the lane that is served."""

    # -- rows enter

    def make(self, work: SourceWork) -> None:
        """Replay tuples."""
        replay = self._context.graph[work.source].source
        self._sources.append(SourceReceipt(work.source, work.part, work.first, work.stop))
        started = time.perf_counter(), time.thread_time()
        rows = replay.rows(work.first, work.stop)
        arrivals = Arrivals(tuple(work.ends_s), tuple(work.counts))
        due = (arrivals.due_times(work.first, work.stop) + work.origin_s) * 1e6
        batch = rows.append_column(
            pa.field(DUE, stored(replay.schema).field(DUE).type),
            pa.array(due.astype(np.int64)).cast(pa.timestamp("us", "UTC")),
        )
        self._enter(work.source, work.part, batch, started)

    def enter(
        self, source: str, part: int, batches: Iterator[pa.RecordBatch], began_s: float, memory: dict[str, Any] | None
    ) -> None:
        """Rows of a streaming source, which Spark has read. `memory`: which of them came before, where that may be."""
        known = Once(memory)
        for batch in batches:
            started = time.perf_counter(), time.thread_time()
            batch = with_due(batch, began_s)
            if NAME in batch.schema.names:
                batch = new_rows(batch, known)
                self._memories[source] = known
            whole, failures = set_aside(batch) if DAMAGED in batch.schema.names else (batch, [])
            self._enter(source, part, whole, started, failures)

    def give(self, operator: str, batch: pa.RecordBatch, began_s: float, sender: int) -> None:
        """Rows that Spark made for a dataframe operator. Which lane each came from is not known any more."""
        receipt = LaneReceipt(operator, 0, emitted=batch.num_rows)
        self._receipts.append(receipt)
        self._pass_on(receipt, with_due(batch, began_s), sender)

    def serve(self, work: LaneWork) -> None:
        """Run an operator, and those chained to it, on lane after lane, until the tuples or the time are used up."""
        self._begin_changes(work)
        if work.proven:
            self._context.proven.update(member.name for member in self._context.chains[work.operator].members)
        deadline = time.perf_counter() + work.budget_s if work.budget_s else float("inf")
        for rows in work.lanes:
            self._serve_lane(work, rows, deadline)
            if time.perf_counter() >= deadline:
                return

    def bury(self, work: LaneWork) -> None:
        """Put the tuples, or the first key to be woken, into the dead letters: they have ended their process before."""
        self._begin_changes(work)
        for rows in work.lanes:
            if not rows.slices:
                chain = self._context.chains[work.operator]
                self._wake(work, rows, chain, self._begin_receipts(chain, rows.lane))
                continue
            receipt = LaneReceipt(work.operator, rows.lane)
            self._receipts.append(receipt)
            for batch in self._read(rows):
                receipt.consumed += batch.num_rows
                receipt.failed += batch.num_rows
                failures = all_failed(batch, work.bury)
                self._check(work.operator, rows.lane, failures)
                self._failures += [(work.operator, rows.lane, failure) for failure in failures]

    def take(self, work: LaneWork, rows: LaneRows) -> Iterator[pa.RecordBatch]:
        """All of a lane's rows, for Spark to serve: its state must see the same rows when a batch is repeated."""
        receipt = LaneReceipt(work.operator, rows.lane)
        self._receipts.append(receipt)
        for batch in self._read(rows):
            receipt.consumed += batch.num_rows
            in_time = _in_time(work, receipt, batch)
            receipt.processed += in_time.num_rows
            yield in_time

    # -- the end

    def receipt(self, work: int) -> tuple[Receipt, Written | None]:
        """Write everything that was routed, then say so."""
        self._write_dead_letters()
        for operator, changed in self._changes.items():
            if changed:
                self._outbox.put_state(operator, *changed.batch())
        written = self._outbox.write(self._context)
        for changed in self._changes.values():
            changed.apply()
        for lane, groups in self._woken:
            assert self._context.state is not None
            lane.timers = self._context.state.first_timers(lane.operator, groups)
        appended, changes = apart(written)
        latencies = None
        if self._finished:
            now_us = self._context.wall_s() * 1e6
            ages = [(now_us - np.asarray(due.view(pa.int64()))) / 1e6 for due in self._finished]
            latencies = LatencyCounts(*bucket_counts(ages[0] if len(ages) == 1 else np.concatenate(ages)))
        return (
            Receipt(
                work,
                self._receipts,
                self._sources,
                appended,
                latencies,
                {source: memory.news() for source, memory in self._memories.items()},
                changes=changes,
            ),
            written,
        )

    # -- inside

    def _begin_changes(self, work: LaneWork) -> None:
        for member in self._context.chains[work.operator].members:
            changes = self._context.changes_of(member, work.planned_s)
            if changes is not None:
                self._changes[member.name] = changes

    def _begin_receipts(self, chain: Chain, lane: int) -> list[LaneReceipt]:
        receipts = [LaneReceipt(member.name, lane) for member in chain.members]
        self._receipts += receipts
        return receipts

    def _serve_lane(self, work: LaneWork, rows: LaneRows, deadline: float) -> None:
        chain = self._context.chains[work.operator]
        receipts = self._begin_receipts(chain, rows.lane)
        self._mine = frozenset(rows.groups)
        chunk, ends = work.chunk, chain.ends
        for batch in self._read(rows):
            at, total = 0, batch.num_rows
            while at < total:
                started = time.perf_counter()
                # A sink's rows must be the same when the work is repeated: the clock does not cut them.
                size = total if ends else min(chunk, total - at)
                piece = batch if size == total else batch.slice(at, size)
                first = rows.first + receipts[0].consumed
                at += size
                receipts[0].consumed += size
                pieces = [_in_time(work, receipts[0], piece)]
                if chain.members[0].keyed is not None:
                    pieces = [_by_event_time(chain.members[0].keyed, work, receipts[0], pieces[0])]
                failed = len(self._failures)
                for member, receipt in zip(chain.members, receipts, strict=True):
                    pieces = self._run(member, receipt, pieces, first)
                if not ends:
                    for piece in pieces:
                        self._route(receipts[-1], piece, rows.lane)
                now = time.perf_counter()
                if now >= deadline:
                    return
                chunk = _next_chunk(size, now - started)
                if len(self._failures) > failed:
                    # Each may cost many calls, between which nobody looks at the clock.
                    chunk = min(chunk, FRAGILE)
        head = chain.members[0]
        if rows.groups and head.keyed is not None and head.keyed.on_timer is not None:
            self._wake(work, rows, chain, receipts)

    def _wake(self, work: LaneWork, rows: LaneRows, chain: Chain, receipts: list[LaneReceipt]) -> None:
        """Wake the keys whose time has come; what they give goes the way of all rows."""
        head = chain.members[0]
        self._woken.append((receipts[0], rows.groups))
        wall, cpu = time.perf_counter(), time.thread_time()
        until_s = work.planned_s, work.watermark_s
        made = wake_keys(head, self._changes[head.name], rows.groups, until_s, work.wake, work.bury)
        receipts[0].busy_s += time.perf_counter() - wall
        receipts[0].cpu_s += time.thread_time() - cpu
        self._check(head.name, rows.lane, made.failures)
        receipts[0].failed += len(made.failures)
        self._failures += [(head.name, rows.lane, failure) for failure in made.failures]
        receipts[0].emitted += made.rows
        pieces = made.batches
        for member, receipt in zip(chain.members[1:], receipts[1:], strict=True):
            pieces = self._run(member, receipt, pieces, 0)
        for piece in pieces:
            self._route(receipts[-1], piece, rows.lane)

    def _enter(
        self,
        source: str,
        part: int,
        batch: pa.RecordBatch,
        started: tuple[float, float],
        failures: Sequence[Failure] = (),
    ) -> None:
        self._check(source, part, failures)
        receipt = LaneReceipt(source, part, processed=batch.num_rows, emitted=batch.num_rows, failed=len(failures))
        self._failures += [(source, part, failure) for failure in failures]
        self._receipts.append(receipt)
        receipt.busy_s, receipt.cpu_s = time.perf_counter() - started[0], time.thread_time() - started[1]
        self._pass_on(receipt, batch, part)

    def _pass_on(self, receipt: LaneReceipt, batch: pa.RecordBatch, sender: int) -> None:
        """From the head of a chain through what is chained to it, then to lanes."""
        chain = self._context.chains[receipt.operator]
        last, pieces = receipt, [batch]
        for member in chain.members[1:]:
            last = LaneReceipt(member.name, receipt.lane)
            self._receipts.append(last)
            pieces = self._run(member, last, pieces, 0)
        for piece in pieces:
            self._route(last, piece, sender)

    def _read(self, rows: LaneRows) -> Iterator[pa.RecordBatch]:
        """A lane's slices, those of one schema together."""
        schemas, reader = self._context.schemas, self._context.reader
        held: list[pa.RecordBatch] = []
        key = None
        for piece in rows.slices:
            if held and piece.schema != key:
                yield _together(held)
                held = []
            key = piece.schema
            held.append(reader.read(piece, schemas[key]))
        if held:
            yield _together(held)

    def _run(
        self, operator: Operator, receipt: LaneReceipt, pieces: list[pa.RecordBatch], first: int
    ) -> list[pa.RecordBatch]:
        out: list[pa.RecordBatch] = []
        for batch in pieces:
            if not batch.num_rows:
                continue
            wall, cpu = time.perf_counter(), time.thread_time()
            ends = operator.kind is Kind.SINK
            if ends:
                made = self._deliver(operator, receipt, batch, first)
            elif operator.keyed is not None and operator.keyed.merge is not None:
                made = self._serve_split(operator, operator.keyed, receipt, batch)
            else:
                made = self._context.run_operator(operator, batch, self._changes.get(operator.name))
            receipt.busy_s += time.perf_counter() - wall
            receipt.cpu_s += time.thread_time() - cpu
            failures = made.failures
            receipt.processed += batch.num_rows - len(failures)
            if not ends:
                self._context.judge(operator.name, made.rows, failures)
            if failures:
                self._check(operator.name, receipt.lane, failures)
                receipt.failed += len(failures)
                self._failures += [(operator.name, receipt.lane, failure) for failure in failures]
            if not ends:
                receipt.emitted += made.rows
            out += made.batches
        return out

    def _serve_split(self, operator: Operator, state: KeyedState, receipt: LaneReceipt, batch: pa.RecordBatch) -> Made:
        """For an operator whose keys may be split: parts of states go to the lanes in which their keys live."""
        served = serve_split(operator, batch, self._changes[operator.name], self._mine)
        receipt.hot += served.hot
        if served.parts is not None:
            self._outbox.put_parts(operator.name, served.parts, state.key)
        return served.made

    def _check(self, operator: str, lane: int, failures: Sequence[Failure]) -> None:
        if failures and self._context.program.settings.on_error == "stop":
            first = failures[0]
            raise OperatorFailed(
                f"operator {operator!r} replica {lane}: {first.error} on tuple {row_to_json(first.row)}; "
                "mend the function, or run with on_error='dead_letter'"
            )

    def _deliver(self, operator: Operator, receipt: LaneReceipt, batch: pa.RecordBatch, first: int) -> Made:
        """Give a sink its rows; when it raises, all of them count as failed, for what it wrote is not known."""
        base_id = self._context.program.base_id
        identity = f"{base_id}-{operator.name}-{receipt.lane}-{first}"
        function = self._deliver_to or operator.function
        assert function is not None
        try:
            function(batch, Delivery(identity, operator.name, receipt.lane, first, base_id))
        except BaseException as error:
            return Made([], all_failed(batch, describe(error)))
        self._finish(receipt, batch)
        return Made([])

    def _route(self, receipt: LaneReceipt, batch: pa.RecordBatch, sender: int) -> None:
        if not batch.num_rows:
            return
        for edge in self._context.graph.edges_from(receipt.operator):
            self._outbox.route(edge, batch, sender)
            if self._context.graph[edge.target].kind is Kind.OUTPUT:
                self._finish(receipt, batch)

    def _finish(self, receipt: LaneReceipt, batch: pa.RecordBatch) -> None:
        receipt.finished += batch.num_rows
        self._finished.append(batch.column(DUE))

    def _write_dead_letters(self) -> None:
        if not self._failures:
            return
        self._outbox.put(LaneId(DEAD_LETTERS, 0), letters(self._failures, self._context.wall_s()))


def _in_time(work: LaneWork, receipt: LaneReceipt, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Drop what is too old. The plan decides, so that a repeated work drops the same tuples."""
    if work.t_out_s is None:
        return batch
    oldest = int((work.planned_s - work.t_out_s) * 1e6)
    due = batch.column(DUE)
    if len(due) <= FEW and all(due[row].value >= oldest for row in range(len(due))):
        return batch
    young = np.asarray(batch.column(DUE).view(pa.int64())) >= oldest
    if young.all():
        return batch
    receipt.late += int(batch.num_rows - young.sum())
    return batch.filter(pa.array(young))


def _by_event_time(state: KeyedState, work: LaneWork, receipt: LaneReceipt, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Note when the newest tuple happened, and drop those that happened before the watermark where that is asked."""
    if state.event_time is None or not batch.num_rows:
        return batch
    happened = batch.column(state.event_time)
    newest = pc.max(happened)
    if newest.is_valid:
        at_s = newest.cast(pa.timestamp("us", happened.type.tz)).value / 1e6
        receipt.event_s = at_s if receipt.event_s is None else max(receipt.event_s, at_s)
    if not state.drop_late or work.watermark_s is None:
        return batch
    oldest = pa.scalar(int(min(work.watermark_s, 2**40) * 1e6)).cast(pa.timestamp("us", happened.type.tz))
    late = pc.fill_null(pc.less(happened, oldest.cast(happened.type)), False)
    dropped = pc.sum(late).as_py() or 0
    if not dropped:
        return batch
    receipt.late += dropped
    return batch.filter(pc.invert(late))


def _next_chunk(size: int, took_s: float) -> int:
    """So many that they take about `rules.CHUNK_S`, but no jump up of more than eight times."""
    return int(min(max(1, size * rules.CHUNK_S / max(took_s, 1e-6)), size * 8, LARGEST_CHUNK))


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of many. A work's tuples are bounded in bytes, so they fit in one."""
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
