"""What a task does with tuples: rows and lanes enter, operators run, a receipt leaves."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from elastream.engine.functions import Failure, Made, apply, describe, row_to_json
from elastream.engine.intake import new_rows, set_aside, with_due
from elastream.engine.kafka_once import Once
from elastream.engine.program import DEAD_LETTER_SCHEMA, DEAD_LETTERS, Program, cached_schema
from elastream.engine.sending import Sending
from elastream.engine.streams import DAMAGED, NAME
from elastream.engine.work import LaneWork, OperatorReceipt, Receipt, SourceReceipt, SourceWork, TaskWork
from elastream.errors import OperatorFailed
from elastream.lanes import LaneId, Store
from elastream.lanes.segments import read_slice
from elastream.scoring.latency import Latencies
from elastream.topology import DUE, Kind, Operator, stored

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


class Serving:
    """Of one task, or of one lane that is served in a thread of its own."""

    def __init__(self, program: Program, store: Store, work: TaskWork, deliver: Deliver | None = None) -> None:
        self._deliver_to = deliver
        self._program = program
        self._graph = program.graph
        self._store = store
        self._work = work
        self._sending = Sending(work)
        self._receipts: list[OperatorReceipt] = []
        self._sources: list[SourceReceipt] = []
        self._failures: list[tuple[str, int, Failure]] = []
        self._memories: dict[str, Once] = {}
        self._latencies = Latencies()
        self._finished: list[pa.Array] = []
        self._deliveries: Counter[LaneId] = Counter()
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
            batch = with_due(batch, self._work.planned_s)
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
        self._pass_on(receipt, with_due(batch, self._work.planned_s))

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

    def absorb(self, other: "Serving") -> None:
        """Take over what was done beside this task."""
        self.served_s = max(self.served_s, other.served_s)
        self._sending.absorb(other._sending)
        self._receipts += other._receipts
        self._failures += other._failures
        self._finished += other._finished

    def receipt(self) -> Receipt:
        """Write everything that was routed, then say so."""
        self._put_aside()
        appended, schemas = self._sending.write(self._store)
        now_us = int(time.time() * 1e6)
        for due in self._finished:
            self._latencies.add((now_us - np.asarray(due).astype(np.int64)) / 1e6)
        return Receipt(
            self._receipts,
            self._sources,
            appended,
            schemas,
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
        """Drop what is too old. The plan decides, so that a repeated tick drops the same tuples."""
        if self._work.t_out_s is None:
            return batch
        oldest = np.int64((self._work.planned_s - self._work.t_out_s) * 1e6)
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
        self._finish(receipt, batch)
        return Made(batch)

    def _route(self, receipt: OperatorReceipt, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        for edge in self._graph.edges_from(receipt.operator):
            self._sending.route(receipt, edge, batch)
            if self._graph[edge.target].kind is Kind.OUTPUT:
                self._finish(receipt, batch)

    def _finish(self, receipt: OperatorReceipt, batch: pa.RecordBatch) -> None:
        receipt.finished += batch.num_rows
        self._finished.append(batch.column(DUE))

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
        letters = pa.RecordBatch.from_pydict(columns, schema=stored(DEAD_LETTER_SCHEMA))
        self._sending.put(LaneId(DEAD_LETTERS, 0), letters)


def _next_chunk(size: int, took_s: float) -> int:
    """So many that they take about `CHUNK_S`, but no jump up of more than eight times."""
    return int(min(max(1, size * CHUNK_S / max(took_s, 1e-6)), size * 8, LARGEST_CHUNK))


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of many. A task's tuples are bounded in bytes, so they fit in one."""
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _nothing(operator: Operator) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=stored(operator.schema))
