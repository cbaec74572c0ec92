"""Rows that enter from outside of the lanes: replayed ones, those of a streaming source, and those that Spark made."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from elastream.engine.messages import LaneReceipt, SourceReceipt, SourceWork
from elastream.engine.worker.dead_letters import Failure
from elastream.engine.worker.intake import DAMAGED, NAME, new_rows, set_aside, with_due
from elastream.engine.worker.work_run import WorkRun
from elastream.kafka import Once
from elastream.topology import DUE, stored
from elastream.workload import Arrivals


def replay_rows(run: WorkRun, work: SourceWork) -> None:
    """Make tuples of a replay."""
    replay = run.context.graph[work.source].source
    run.add_source(SourceReceipt(work.source, work.part, work.first, work.stop))
    started = time.perf_counter(), time.thread_time()
    rows = replay.rows(work.first, work.stop)
    arrivals = Arrivals(tuple(work.ends_s), tuple(work.counts))
    due = (arrivals.due_times(work.first, work.stop) + work.origin_s) * 1e6
    batch = rows.append_column(
        pa.field(DUE, stored(replay.schema).field(DUE).type),
        pa.array(due.astype(np.int64)).cast(pa.timestamp("us", "UTC")),
    )
    _enter(run, work.source, work.part, batch, started)


def enter_rows(
    run: WorkRun,
    source: str,
    part: int,
    batches: Iterator[pa.RecordBatch],
    began_s: float,
    memory: dict[str, Any] | None,
) -> None:
    """Rows of a streaming source, which Spark has read. `memory`: which of them came before, where that may be."""
    known = Once(memory)
    for batch in batches:
        started = time.perf_counter(), time.thread_time()
        batch = with_due(batch, began_s)
        if NAME in batch.schema.names:
            batch = new_rows(batch, known)
            run.memories[source] = known
        whole, failures = set_aside(batch) if DAMAGED in batch.schema.names else (batch, [])
        _enter(run, source, part, whole, started, failures)


def give_rows(run: WorkRun, operator: str, batch: pa.RecordBatch, began_s: float, sender: int) -> None:
    """Rows that Spark made for a dataframe operator. Which lane each came from is not known any more."""
    receipt = run.add(LaneReceipt(operator, 0, emitted=batch.num_rows))
    _pass_on(run, receipt, with_due(batch, began_s), sender)


def _enter(
    run: WorkRun,
    source: str,
    part: int,
    batch: pa.RecordBatch,
    started: tuple[float, float],
    failures: Sequence[Failure] = (),
) -> None:
    receipt = run.add(LaneReceipt(source, part, processed=batch.num_rows, emitted=batch.num_rows))
    run.fail(receipt, failures)
    receipt.busy_s, receipt.cpu_s = time.perf_counter() - started[0], time.thread_time() - started[1]
    _pass_on(run, receipt, batch, part)


def _pass_on(run: WorkRun, receipt: LaneReceipt, batch: pa.RecordBatch, sender: int) -> None:
    """From the head of a chain through what is chained to it, then to lanes."""
    chain = run.context.chains[receipt.operator]
    last, pieces = receipt, [batch]
    for member in chain.members[1:]:
        last = run.add(LaneReceipt(member.name, receipt.lane))
        pieces = run.run(member, last, pieces, 0)
    for piece in pieces:
        run.route(last, piece, sender)
