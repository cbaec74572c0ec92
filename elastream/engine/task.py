"""A task, in a Python worker: read the slices, run the operators, route what comes out, write, give a receipt.

The data does not leave the process between these steps.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from elastream.engine.base_id import check_base
from elastream.engine.functions import Failure, Made, apply, describe, row_to_json
from elastream.engine.intake import new_rows, set_aside, with_due
from elastream.engine.kafka_once import Once
from elastream.engine.program import DEAD_LETTER_SCHEMA, DEAD_LETTERS, Program, cached_schema
from elastream.engine.streams import DAMAGED, NAME
from elastream.engine.work import LaneWork, OperatorReceipt, Receipt, SourceReceipt, SourceWork, TaskWork
from elastream.errors import BaseUnusable, ElastreamError, OperatorFailed
from elastream.lanes import LaneId, Store
from elastream.lanes.segments import encode_schema, read_slice, write_segments
from elastream.routing import Sender, Snapshot, split
from elastream.scoring.latency import Latencies
from elastream.topology import DUE, Edge, Kind, Operator, stored

CHUNK_S = 0.02
"""How long a chunk of tuples should take: the clock is looked at after each."""

LARGEST_CHUNK = 65536


@dataclass(frozen=True)
class Delivery:
    """Which rows a sink gets. A tick repeated after a crash gives the same rows under the same id."""

    id: str
    operator: str
    replica: int
    tick: int


Deliver = Callable[[pa.RecordBatch, Delivery], object]


def run_task(program: Program, store: Store, work: TaskWork) -> Receipt:
    """Do all the work of one task. An operator's defect comes back in the receipt, nothing of the tick is applied."""
    task = _Task(program, store, work)
    try:
        check_base(store, program.base_id)
        if work.warm_s:
            time.sleep(work.warm_s)
        for source in work.sources:
            task.make(source)
        if work.side_by_side:
            _serve_side_by_side(task, program, store, work)
        else:
            for lane in work.lanes:
                task.serve(lane)
        return task.receipt()
    except ElastreamError as error:
        return Receipt.failed(error)


def _serve_side_by_side(task: "_Task", program: Program, store: Store, work: TaskWork) -> None:
    """One thread for each lane; what they made is written together."""

    def served(lane: LaneWork) -> "_Task":
        alone = _Task(program, store, work)
        alone.serve(lane)
        return alone

    with ThreadPoolExecutor(max_workers=len(work.lanes)) as pool:
        for alone in pool.map(served, work.lanes):
            task.absorb(alone)


def route_batch(
    program: Program, store: Store, work: TaskWork, source: str, batches: Iterator[pa.RecordBatch]
) -> Receipt:
    """The same for the rows of a streaming DataFrame, which Spark has read already."""
    task = _Task(program, store, work)
    try:
        check_base(store, program.base_id)
        task.enter(source, 0, batches)
        return task.receipt()
    except ElastreamError as error:
        return Receipt.failed(error)


def take_lane(program: Program, store: Store, work: TaskWork, deliver: Deliver) -> Callable[[], Receipt]:
    """The rows of one lane of a sink, for somebody else to write; the receipt is to be asked for when that is done."""
    check_base(store, program.base_id)
    task = _Task(program, store, work, deliver)
    task.serve(work.lanes[0])
    return task.receipt


def read_lanes(
    program: Program, store: Store, work: TaskWork
) -> tuple[Iterator[pa.RecordBatch], Callable[[], Receipt]]:
    """The rows of lanes that Spark serves, and the receipt, to be asked for when they have been read."""
    task = _Task(program, store, work)
    return (batch for lane in work.lanes for batch in task.take(lane)), task.receipt


def route_results(
    program: Program, store: Store, work: TaskWork, operator: str, sender: int, batches: Iterator[pa.RecordBatch]
) -> Receipt:
    """What Spark made of them goes on to lanes. Which lane a row came from is not known any more."""
    task = _Task(program, store, work)
    try:
        for batch in batches:
            task.give(operator, sender, batch)
        return task.receipt()
    except ElastreamError as error:
        return Receipt.failed(error)


class _Task:
    """Collects, over all the work of a task, what goes to which lane."""

    def __init__(self, program: Program, store: Store, work: TaskWork, deliver: Deliver | None = None) -> None:
        self._deliver_to = deliver
        self._program = program
        self._graph = program.graph
        self._store = store
        self._work = work
        self._out: dict[LaneId, list[pa.RecordBatch]] = {}
        self._receipts: list[OperatorReceipt] = []
        self._sources: list[SourceReceipt] = []
        self._failures: list[tuple[str, int, Failure]] = []
        self._memories: dict[str, Once] = {}
        self._latencies = Latencies()
        self._finished: list[pa.Array] = []
        self._deliveries: Counter[LaneId] = Counter()
        self._given: Counter[LaneId] = Counter()
        self._turns: dict[tuple[str, str], int] = {}
        self.served_s = 0.0

    def make(self, work: SourceWork) -> None:
        """Replay the tuples that are due."""
        replay = self._graph[work.source].source
        stop = min(work.stop, work.arrivals.due_by(time.time() - work.origin_s)) if work.due_only else work.stop
        if stop <= work.first:
            return
        self._sources.append(SourceReceipt(work.source, work.part, work.first, stop))
        started = time.perf_counter(), time.thread_time()
        rows = replay.rows(work.first, stop)
        due = (work.arrivals.due_times(work.first, stop) + work.origin_s) * 1e6
        batch = rows.append_column(
            pa.field(DUE, stored(replay.schema).field(DUE).type),
            pa.array(due.astype(np.int64)).cast(pa.timestamp("us", "UTC")),
        )
        self._enter(work.source, work.part, batch, started)

    def enter(self, source: str, part: int, batches: Iterator[pa.RecordBatch]) -> None:
        memory = Once(self._work.memories.get(source))
        for batch in batches:
            started = time.perf_counter(), time.thread_time()
            batch = with_due(batch, time.time())
            if NAME in batch.schema.names:
                batch = new_rows(batch, memory)
                self._memories[source] = memory
            whole, failures = set_aside(batch) if DAMAGED in batch.schema.names else (batch, [])
            self._enter(source, part, whole, started, failures)

    def _enter(
        self,
        source: str,
        part: int,
        batch: pa.RecordBatch,
        started: tuple[float, float],
        failures: Sequence[Failure] = (),
    ) -> None:
        self._check(source, part, failures)
        receipt = OperatorReceipt(source, part, processed=batch.num_rows, emitted=batch.num_rows, failed=len(failures))
        self._failures += [(source, part, failure) for failure in failures]
        self._receipts.append(receipt)
        receipt.busy_s, receipt.cpu_s = time.perf_counter() - started[0], time.thread_time() - started[1]
        self.served_s += receipt.busy_s
        self._pass_on(receipt, batch)

    def _pass_on(self, receipt: OperatorReceipt, batch: pa.RecordBatch) -> None:
        """From the head of a chain through what is chained to it, then to lanes."""
        chain = self._graph.chain(receipt.operator)
        members = [receipt, *(OperatorReceipt(member.name, receipt.lane) for member in chain[1:])]
        self._receipts += members[1:]
        made = batch
        for member, its in zip(chain[1:], members[1:], strict=True):
            made = self._run(member, its, made)
        self._route(members[-1], made)

    def take(self, work: LaneWork) -> Iterator[pa.RecordBatch]:
        """All that is planned of a lane: Spark's state must see the same rows when a tick is repeated."""
        receipt = OperatorReceipt(work.operator, work.lane)
        self._receipts.append(receipt)
        for batch in self._read(work):
            receipt.consumed += batch.num_rows
            in_time = self._in_time(receipt, batch)
            receipt.processed += in_time.num_rows
            yield in_time

    def give(self, operator: str, sender: int, batch: pa.RecordBatch) -> None:
        receipt = OperatorReceipt(operator, sender, emitted=batch.num_rows)
        self._receipts.append(receipt)
        self._pass_on(receipt, with_due(batch, time.time()))

    def serve(self, work: LaneWork) -> None:
        """Run a lane's operator, and those chained to it, until the tuples or the time are used up."""
        chain = self._graph.chain(work.operator)
        receipts = [OperatorReceipt(member.name, work.lane) for member in chain]
        self._receipts += receipts
        ends = chain[-1].kind is Kind.SINK
        deadline = time.perf_counter() + work.budget_s
        chunk = work.chunk
        for batch in self._read(work):
            at = 0
            while at < batch.num_rows:
                started = time.perf_counter()
                # A sink's rows must be the same when the tick is repeated: the clock does not cut them.
                size = batch.num_rows if ends else chunk
                piece = batch.slice(at, size)
                at += piece.num_rows
                receipts[0].consumed += piece.num_rows
                piece = self._in_time(receipts[0], piece)
                for member, its in zip(chain, receipts, strict=True):
                    piece = self._run(member, its, piece)
                if not ends:
                    self._route(receipts[-1], piece)
                now = time.perf_counter()
                if now >= deadline and not ends:
                    return
                chunk = _next_chunk(size, now - started)

    def absorb(self, other: "_Task") -> None:
        """Take over what was done beside this task."""
        self.served_s = max(self.served_s, other.served_s)
        for lane, batches in other._out.items():
            self._out.setdefault(lane, []).extend(batches)
        self._receipts += other._receipts
        self._failures += other._failures
        self._finished += other._finished

    def receipt(self) -> Receipt:
        """Write everything that was routed, then say so."""
        self._put_aside()
        try:
            appended, schemas = write_segments(self._store, self._work.tick, self._out)
        except OSError as error:
            raise BaseUnusable(
                f"base {self._store}: a segment of tick {self._work.tick} could not be written: {error}; "
                "make room or mend the permissions, then start again with the same base"
            ) from error
        now_us = int(time.time() * 1e6)
        for due in self._finished:
            self._latencies.add((now_us - np.asarray(due).astype(np.int64)) / 1e6)
        return Receipt(
            self._receipts,
            self._sources,
            appended,
            {key: encode_schema(schema) for key, schema in schemas.items()},
            self._latencies.to_json() if self._latencies.count else None,
            self.served_s,
            {source: memory.news() for source, memory in self._memories.items()},
        )

    def _read(self, work: LaneWork) -> Iterator[pa.RecordBatch]:
        """The lane's slices, those of one schema together."""
        held: list[pa.RecordBatch] = []
        for piece in work.slices:
            batch = read_slice(self._store, piece, cached_schema(self._work.schemas[piece.schema]))
            if held and not batch.schema.equals(held[0].schema):
                yield _together(held)
                held = []
            held.append(batch)
        if held:
            yield _together(held)

    def _in_time(self, receipt: OperatorReceipt, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Drop what is too old. The plan's clock decides, so that a repeated tick drops the same tuples."""
        t_out_s = self._program.settings.t_out_s
        if t_out_s is None:
            return batch
        oldest = np.int64((self._work.planned_s - t_out_s) * 1e6)
        young = np.asarray(batch.column(DUE)).astype(np.int64) >= oldest
        receipt.late += int(batch.num_rows - young.sum())
        return batch if young.all() else batch.filter(pa.array(young))

    def _run(self, operator: Operator, receipt: OperatorReceipt, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not batch.num_rows:
            return batch if operator.kind is Kind.SINK else _nothing(operator)
        wall, cpu = time.perf_counter(), time.thread_time()
        made = self._deliver(operator, receipt, batch) if operator.kind is Kind.SINK else apply(operator, batch)
        took_s = time.perf_counter() - wall
        receipt.busy_s += took_s
        self.served_s += took_s
        receipt.cpu_s += time.thread_time() - cpu
        self._check(operator.name, receipt.lane, made.failures)
        receipt.failed += len(made.failures)
        receipt.processed += batch.num_rows - len(made.failures)
        receipt.emitted += made.batch.num_rows if operator.kind is not Kind.SINK else 0
        self._failures += [(operator.name, receipt.lane, failure) for failure in made.failures]
        return made.batch

    def _check(self, operator: str, lane: int, failures: Sequence[Failure]) -> None:
        if failures and self._program.settings.on_error == "stop":
            first = failures[0]
            raise OperatorFailed(
                f"operator {operator!r} replica {lane}: {first.error} on tuple {row_to_json(first.row)}; "
                "mend the function, or run with on_error='dead_letter'"
            )

    def _deliver(self, operator: Operator, receipt: OperatorReceipt, batch: pa.RecordBatch) -> Made:
        """Give a sink its rows; when it raises, all of them count as failed, for what it wrote is not known."""
        lane = LaneId(operator.name, receipt.lane)
        identity = f"{self._program.base_id}-{self._work.tick}-{operator.name}-{receipt.lane}-{self._deliveries[lane]}"
        self._deliveries[lane] += 1
        function = self._deliver_to or operator.function
        assert function is not None
        try:
            function(batch, Delivery(identity, operator.name, receipt.lane, self._work.tick))
        except Exception as error:
            rows = batch.drop_columns([DUE]).to_pylist()
            times = np.asarray(batch.column(DUE)).astype(np.int64)
            return Made(
                batch.slice(0, 0), [Failure(r, describe(error), int(t)) for r, t in zip(rows, times, strict=True)]
            )
        receipt.finished += batch.num_rows
        self._finished.append(batch.column(DUE))
        return Made(batch)

    def _route(self, receipt: OperatorReceipt, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        for edge in self._graph.edges_from(receipt.operator):
            # Each batch goes on where the one before ended: what is over must not always go to the same lanes.
            turn = self._turns.setdefault((receipt.operator, edge.target), self._work.tick + receipt.lane)
            self._turns[receipt.operator, edge.target] = turn + batch.num_rows
            sender = Sender(receipt.lane, turn)
            for lane, rows in split(edge.grouping, batch, self._snapshot(edge), sender).items():
                self._out.setdefault(LaneId(edge.target, lane), []).append(rows)
                delivered = receipt.delivered.setdefault(edge.target, {})
                delivered[lane] = delivered.get(lane, 0) + rows.num_rows
                self._given[LaneId(edge.target, lane)] += rows.num_rows
            if self._graph[edge.target].kind is Kind.OUTPUT:
                receipt.finished += batch.num_rows
                self._finished.append(batch.column(DUE))

    def _snapshot(self, edge: Edge) -> Snapshot:
        """What is known of the operator behind an edge, with what this task has given it already."""
        target, known = edge.target, self._work.loads.get(edge.grouping.kind, {})
        active = tuple(self._work.active[target])
        queued = tuple(self._work.queued.get(target, ()))
        if target not in known:
            return Snapshot(active, queued)
        load, cost = known[target]
        given = (self._given[LaneId(target, lane)] for lane in active)
        return Snapshot(active, queued, tuple(u + n * cost for u, n in zip(load, given, strict=True)), cost)

    def _put_aside(self) -> None:
        if not self._failures:
            return
        now = int(time.time() * 1e6)
        columns = {
            "operator": [name for name, _, _ in self._failures],
            "replica": [lane for _, lane, _ in self._failures],
            "error": [failure.error for _, _, failure in self._failures],
            "row": [row_to_json(failure.row) for _, _, failure in self._failures],
            "failed_at": [now] * len(self._failures),
            DUE: [failure.due_us for _, _, failure in self._failures],
        }
        self._out[LaneId(DEAD_LETTERS, 0)] = [pa.RecordBatch.from_pydict(columns, schema=stored(DEAD_LETTER_SCHEMA))]


def _next_chunk(size: int, took_s: float) -> int:
    """So many that they take about `CHUNK_S`, but no jump up of more than eight times."""
    return int(min(max(1, size * CHUNK_S / max(took_s, 1e-6)), size * 8, LARGEST_CHUNK))


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of many. A task's tuples are bounded in bytes, so they fit in one."""
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _nothing(operator: Operator) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=stored(operator.schema))
