"""Rows that enter from outside of the lanes: replayed ones, those of a streaming source, and those that Spark made."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from elastream.engine.event_times import origin_name
from elastream.engine.messages import LaneReceipt, SourceReceipt, SourceWork
from elastream.engine.worker.dead_letters import Failure
from elastream.engine.worker.functions import Made
from elastream.engine.worker.in_parts import in_parts
from elastream.engine.worker.intake import DAMAGED, NAME, PART, by_part, new_rows, set_aside, with_due
from elastream.engine.worker.work_run import WorkRun
from elastream.errors import OperatorFailed
from elastream.kafka import Once
from elastream.topology import DUE, stored
from elastream.topology.schemas import DUE_TYPE
from elastream.workload import Arrivals
from elastream.workload.replay import Replay


def replay_rows(run: WorkRun, work: SourceWork) -> None:
    """Make tuples of a replay."""
    replay = run.context.graph[work.source].source
    assert isinstance(replay, Replay), f"source {work.source!r} is no replay"
    run.add_source(SourceReceipt(work.source, work.part, work.first, work.stop))
    started = run.context.now(), run.context.cpu_s()
    arrivals = Arrivals(tuple(work.ends_s), tuple(work.counts))
    due_us = ((arrivals.due_times(work.first, work.stop) + work.origin_s) * 1e6).astype(np.int64)
    numbers = pa.record_batch(
        [pa.array(np.arange(work.first, work.stop)), pa.array(due_us).cast(DUE_TYPE)], names=["number", DUE]
    )
    made = in_parts(numbers, lambda some: _make(replay, some))
    if len(made.failures) == numbers.num_rows > 1:
        # No tuple's fault.
        raise OperatorFailed(f"source {work.source!r}: its function makes no tuple: {made.failures[0].error}; mend it")
    batch = made.batches[0] if made.batches else pa.RecordBatch.from_pylist([], schema=stored(replay.schema))
    receipt = LaneReceipt(work.source, work.part, origin=origin_name(work.source, ""))
    _enter(run, receipt, batch, started, made.failures)


def _make(replay: Replay, numbers: pa.RecordBatch) -> Made:
    """The tuples of these numbers, which have no gap, with the times when they are due."""
    first = numbers.column("number")[0].as_py()
    rows = replay.rows(first, first + numbers.num_rows)
    return Made([rows.append_column(stored(replay.schema).field(DUE), numbers.column(DUE))])


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
        started = run.context.now(), run.context.cpu_s()
        batch = with_due(batch, began_s)
        for name, rows in by_part(batch):
            if NAME in rows.schema.names:
                rows = new_rows(rows, known)
                run.memories[source] = known
            elif PART in rows.schema.names:
                rows = rows.drop_columns([PART])
            whole, failures = set_aside(rows) if DAMAGED in rows.schema.names else (rows, [])
            _enter(run, LaneReceipt(source, part, origin=origin_name(source, name)), whole, started, failures)
            started = run.context.now(), run.context.cpu_s()


def give_rows(run: WorkRun, operator: str, batch: pa.RecordBatch, began_s: float, sender: int) -> None:
    """Rows that Spark made for a dataframe operator. Which lane each came from is not known any more."""
    receipt = run.add(LaneReceipt(operator, 0, emitted=batch.num_rows))
    _pass_on(run, receipt, with_due(batch, began_s), sender)


def _enter(
    run: WorkRun,
    receipt: LaneReceipt,
    batch: pa.RecordBatch,
    started: tuple[float, float],
    failures: Sequence[Failure] = (),
) -> None:
    run.add(receipt)
    receipt.processed = receipt.emitted = batch.num_rows
    run.fail(receipt, failures)
    receipt.busy_s, receipt.cpu_s = run.context.now() - started[0], run.context.cpu_s() - started[1]
    _pass_on(run, receipt, batch, receipt.lane)
    # A row that cannot be routed has failed, and counts once.
    receipt.processed -= receipt.failed - len(failures)


def _pass_on(run: WorkRun, receipt: LaneReceipt, batch: pa.RecordBatch, sender: int) -> None:
    """From the head of a chain through what is chained to it, then to lanes."""
    chain = run.context.chains[receipt.operator]
    last, pieces = receipt, [batch]
    run.origin = receipt.origin or receipt.operator
    run.note_times(receipt, pieces)
    for member in chain.members[1:]:
        last = run.add(LaneReceipt(member.name, receipt.lane))
        pieces = run.run(member, last, pieces, 0)
    for piece in pieces:
        run.route_in_parts(last, piece, sender)
