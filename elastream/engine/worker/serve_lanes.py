"""Serving lanes: an operator, and those chained to it, run on what waits, and keys are woken whose time has come."""

from collections.abc import Iterator

import pyarrow as pa

from elastream import rules
from elastream.engine.messages import BuryTimer, BuryTuples, LaneReceipt, LaneRows, ServeWork, WakeWork
from elastream.engine.worker.context import Chain
from elastream.engine.worker.dead_letters import all_failed
from elastream.engine.worker.lateness import by_event_time, in_time
from elastream.engine.worker.read_lane import read_by_origin, read_lane
from elastream.engine.worker.smaller_works import Step
from elastream.engine.worker.wake import DueKeys, wake_keys
from elastream.engine.worker.work_run import WorkRun

LARGEST_CHUNK = 65536

FRAGILE = 64
"""The largest chunk after one with a tuple on which an operator raised."""


def serve_lanes(run: WorkRun, work: ServeWork) -> None:
    """Serve lane after lane, until the tuples or the time are used up."""
    context = run.context
    run.begin_changes(work.operator, work.planned_s)
    if work.proven:
        context.proven.update(member.name for member in context.chains[work.operator].members)
    deadline = context.now() + work.budget_s if work.budget_s else float("inf")
    for rows in work.lanes:
        _serve_lane(run, work, rows, deadline)
        run.step = None
        if context.now() >= deadline:
            return


def wake_lane(run: WorkRun, work: WakeWork) -> None:
    """Wake keys of a lane, and serve no tuple."""
    run.begin_changes(work.operator, work.clock_s)
    chain = run.context.chains[work.operator]
    keys = DueKeys(work.groups, work.clock_s, work.watermark_s, work.keys)
    _wake(run, work.lane, keys, chain, run.add_chain(chain, work.lane))


def bury_tuples(run: WorkRun, work: BuryTuples) -> None:
    """Put tuples into the dead letters: they have ended their process before, or raised alone."""
    run.begin_changes(work.operator, work.planned_s)
    receipt = run.add(LaneReceipt(work.operator, work.lane.lane))
    for batch in read_lane(run.context, work.lane):
        receipt.consumed += batch.num_rows
        run.fail(receipt, all_failed(batch, work.error))


def bury_timer(run: WorkRun, work: BuryTimer) -> None:
    """Put the first key whose time has come into the dead letters."""
    run.begin_changes(work.operator, work.clock_s)
    chain = run.context.chains[work.operator]
    keys = DueKeys(work.groups, work.clock_s, work.watermark_s, 1, work.error)
    _wake(run, work.lane, keys, chain, run.add_chain(chain, work.lane))


def take_rows(run: WorkRun, work: ServeWork, rows: LaneRows) -> Iterator[pa.RecordBatch]:
    """All of a lane's rows, for Spark to serve: its state must see the same rows when a batch is repeated."""
    receipt = run.add(LaneReceipt(work.operator, rows.lane))
    for batch in read_lane(run.context, rows):
        receipt.consumed += batch.num_rows
        young = in_time(work, receipt, batch)
        receipt.processed += young.num_rows
        yield young


def _serve_lane(run: WorkRun, work: ServeWork, rows: LaneRows, deadline: float) -> None:
    chain = run.context.chains[work.operator]
    receipts = run.add_chain(chain, rows.lane)
    run.mine = frozenset(rows.groups)
    run.step = Step(rows.lane, wakes=False)
    chunk, ends = work.chunk, chain.ends
    for origin, batch in read_by_origin(run.context, rows, tracked=work.operator in run.context.tracked):
        run.origin = origin
        at, total = 0, batch.num_rows
        while at < total:
            started = run.context.now()
            # A sink's rows must be the same when the work is repeated: the clock does not cut them.
            size = total if ends else min(chunk, total - at)
            piece = batch if size == total else batch.slice(at, size)
            first = rows.first + receipts[0].consumed
            at += size
            receipts[0].consumed += size
            pieces = [in_time(work, receipts[0], piece)]
            if chain.members[0].keyed is not None:
                pieces = [by_event_time(chain.members[0].keyed, work, receipts[0], pieces[0])]
            failed = len(run.failures)
            for member, receipt in zip(chain.members, receipts, strict=True):
                pieces = run.run(member, receipt, pieces, first)
            if not ends:
                for piece in pieces:
                    run.route(receipts[-1], piece, rows.lane)
            now = run.context.now()
            if now >= deadline:
                return
            chunk = _next_chunk(size, now - started)
            if len(run.failures) > failed:
                # Each may cost many calls, between which nobody looks at the clock.
                chunk = min(chunk, FRAGILE)
    head = chain.members[0]
    if rows.groups and head.keyed is not None and head.keyed.on_timer is not None:
        keys = DueKeys(rows.groups, work.planned_s, work.watermark_s, None if work.wakes else 0)
        _wake(run, rows.lane, keys, chain, receipts)


def _wake(run: WorkRun, lane: int, keys: DueKeys, chain: Chain, receipts: list[LaneReceipt]) -> None:
    """Wake the keys whose time has come; their rows go the way of all rows."""
    head = chain.members[0]
    run.step = Step(lane, wakes=True)
    run.add_woken(receipts[0], keys.groups)
    run.origin = head.name
    wall, cpu = run.context.now(), run.context.cpu_s()
    made = wake_keys(head, run.changes[head.name], keys)
    receipts[0].busy_s += run.context.now() - wall
    receipts[0].cpu_s += run.context.cpu_s() - cpu
    run.fail(receipts[0], made.failures)
    receipts[0].emitted += made.rows
    run.note_times(receipts[0], made.batches)
    pieces = made.batches
    for member, receipt in zip(chain.members[1:], receipts[1:], strict=True):
        pieces = run.run(member, receipt, pieces, 0)
    for piece in pieces:
        run.route(receipts[-1], piece, lane)


def _next_chunk(size: int, took_s: float) -> int:
    """So many that they take about `rules.CHUNK_S`, but no jump up of more than eight times."""
    return int(min(max(1, size * rules.CHUNK_S / max(took_s, 1e-6)), size * 8, LARGEST_CHUNK))
