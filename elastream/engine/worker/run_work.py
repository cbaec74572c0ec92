"""One work of a host: rows are read or made, operators run, what comes out is routed and written, and a receipt is given."""

import traceback

from elastream.engine.messages import (
    LaneWork,
    Receipt,
    Routing,
    SourceWork,
    SyncWork,
    TimeWork,
    WholeWork,
    Work,
    problem_of,
)
from elastream.engine.worker.context import WorkerContext
from elastream.engine.worker.enter_rows import replay_rows
from elastream.engine.worker.serve_lanes import bury, serve_lanes
from elastream.engine.worker.service_times import time_operators
from elastream.engine.worker.smaller_works import smaller
from elastream.engine.worker.state_works import sync_state, write_whole
from elastream.engine.worker.work_run import WorkRun
from elastream.errors import ElastreamError, RunFailed
from elastream.lanes.segment_files import Written
from elastream.user_code import describe

Done = tuple[Receipt, Written | None]


def run_work(context: WorkerContext, routing: Routing, work: Work) -> Done:
    """Do one work. An error that no tuple causes comes back in the receipt; then nothing else is in it."""
    try:
        return _do(context, routing, work)
    except ElastreamError as error:
        return Receipt(work.id, problem=problem_of(error)), None
    except BaseException as error:
        return Receipt(work.id, problem=problem_of(_unexpected(work, error))), None


def _do(context: WorkerContext, routing: Routing, work: Work) -> Done:
    if isinstance(work, TimeWork):
        return Receipt(work.id, timed=time_operators(context, work.totals, work.seconds)), None
    if isinstance(work, SyncWork):
        return sync_state(context, work), None
    if isinstance(work, WholeWork):
        return write_whole(context, work)
    if isinstance(work, LaneWork):
        return _serve_in_parts(context, routing, work)
    run = WorkRun(context, routing, work.turn, work.queued, work.loads)
    replay_rows(run, work)
    return run.receipt(work.id)


def _serve_in_parts(context: WorkerContext, routing: Routing, work: LaneWork) -> Done:
    """Serve a work; after an unexpected error a part of it, until the tuple or key that causes the error stands alone.

    That one goes to the dead letters. Nothing of an attempt that raised is kept. The rest waits in its lanes for the next work.
    """
    part = work
    while True:
        run = WorkRun(context, routing, part.turn, part.queued, part.loads)
        try:
            (bury if part.bury else serve_lanes)(run, part)
            return run.receipt(part.id)
        except ElastreamError:
            raise
        except BaseException as error:
            tried = smaller(part, run.step, describe(error), whole=context.chains[part.operator].ends)
            if tried is None:
                raise
            part = tried


def _unexpected(work: Work, error: BaseException) -> RunFailed:
    where = "a source" if isinstance(work, SourceWork | TimeWork) else f"operator {work.operator!r}"
    return RunFailed(f"{where}: the host met a defect: {''.join(traceback.format_exception(error))[-1500:]}")
