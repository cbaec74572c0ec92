"""One work of a host: rows are read or made, operators run, what comes out is routed and written, and a receipt is given."""

import traceback

from elastream.engine.messages import (
    BuryTimer,
    BuryTuples,
    LaneWork,
    Receipt,
    Routing,
    ServeWork,
    SourceWork,
    SyncWork,
    TimeWork,
    WakeWork,
    WholeWork,
    Work,
    problem_of,
)
from elastream.engine.worker.context import WorkerContext
from elastream.engine.worker.enter_rows import replay_rows
from elastream.engine.worker.serve_lanes import bury_timer, bury_tuples, serve_lanes, wake_lane
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
    if isinstance(work, SourceWork):
        run = WorkRun(context, routing, work.turn, work.queued, work.loads)
        replay_rows(run, work)
        return run.receipt(work.id)
    return _serve_in_parts(context, routing, work)


def _serve_in_parts(context: WorkerContext, routing: Routing, work: LaneWork) -> Done:
    """Do a work of a lane; after an unexpected error a part of it, until the tuple or key that causes the error stands alone.

    That one goes to the dead letters. Nothing of an attempt that raised is kept. The rest waits in its lanes for the next work.
    """
    part = work
    while True:
        run = _run_of(context, routing, part)
        try:
            _do_part(run, part)
            return run.receipt(part.id)
        except ElastreamError:
            raise
        except BaseException as error:
            tried = smaller(part, run.step, describe(error), whole=context.chains[part.operator].ends)
            if tried is None:
                raise
            part = tried


def _run_of(context: WorkerContext, routing: Routing, work: LaneWork) -> WorkRun:
    if isinstance(work, BuryTuples | BuryTimer):
        return WorkRun(context, routing, 0, {}, [])
    return WorkRun(context, routing, work.turn, work.queued, work.loads)


def _do_part(run: WorkRun, work: LaneWork) -> None:
    match work:
        case ServeWork():
            serve_lanes(run, work)
        case WakeWork():
            wake_lane(run, work)
        case BuryTuples():
            bury_tuples(run, work)
        case BuryTimer():
            bury_timer(run, work)


def _unexpected(work: Work, error: BaseException) -> RunFailed:
    where = "a source" if isinstance(work, SourceWork | TimeWork) else f"operator {work.operator!r}"
    return RunFailed(f"{where}: the host met a defect: {''.join(traceback.format_exception(error))[-1500:]}")
